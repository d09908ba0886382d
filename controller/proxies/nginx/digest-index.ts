import { crc32 } from "node:zlib";

/**
 * Digests of pieces by name, with a checksum over all of them that follows each change: two sides that hold the same pieces
 * show the same one, so they need not compare each. It finds drift; it is no protection against who wants to deceive.
 */
export class DigestIndex {
  private readonly digests = new Map<string, string>();
  private low = 0;
  private high = 0;

  get(name: string): string | undefined {
    return this.digests.get(name);
  }

  /** Undefined takes the piece out. */
  set(name: string, digest: string | undefined): void {
    const before = this.digests.get(name);
    if (before === digest) return;
    if (before !== undefined) this.add(name, before);
    if (digest === undefined) this.digests.delete(name);
    else {
      this.digests.set(name, digest);
      this.add(name, digest);
    }
  }

  names(): IterableIterator<string> {
    return this.digests.keys();
  }

  get count(): number {
    return this.digests.size;
  }

  /** 16 hex digits, as NGINX gives them. */
  get sum(): string {
    return hex(this.low) + hex(this.high);
  }

  /** Adds a piece to the checksum, or takes it away: XOR is both. balancer/state/store.lua has the same. */
  private add(name: string, digest: string): void {
    const hash = crc32(name);
    this.low ^= hash ^ word(digest, 0);
    this.high ^= ((hash << 16) | (hash >>> 16)) ^ word(digest, 8);
  }
}

/** Four bytes of hex text, little-endian. */
function word(digest: string, at: number): number {
  return Buffer.from(digest.slice(at, at + 8), "hex").readInt32LE(0);
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}
