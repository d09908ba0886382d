import { constants } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { type Piece, pieceName } from "./piece.js";
import { decodeRecord, encodeRecord, recordSize } from "./record.js";

const HEADER = Buffer.from("NJKS\x01\0\0\0", "latin1");
const MODE = 0o600;
/** Records larger than this are damage. */
const LARGEST = 64 * 1024 * 1024;
/** A file below this size is not worth writing anew. */
const LEAST_TO_COMPACT = 256 * 1024;
const WINDOW = 1024 * 1024;

interface Place {
  digest: string;
  at: number;
  size: number;
}

/**
 * The last good state on disk: what NGINX has accepted, and from where it takes it when it starts while nobody else can tell
 * it. "NJKS", u32 1, then records (`record.ts`); the last one of a piece counts. It is written behind what NGINX has in
 * force, never ahead of it, with mode 0600, since it holds private keys. A record that is torn ends it.
 */
export class Journal {
  private readonly places = new Map<string, Place>();
  private live = 0;
  /** Accepted, and not on disk yet because it could not be written. */
  private readonly unwritten = new Map<string, Piece>();

  private constructor(
    readonly path: string,
    private file: FileHandle,
    private end: number,
  ) {}

  /** Opens a journal, and makes it if there is none. What can't be read of it is cut off. */
  static async open(path: string): Promise<Journal> {
    const file = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, MODE);
    try {
      await file.chmod(MODE);
      const journal = new Journal(path, file, HEADER.length);
      await journal.load();
      return journal;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Digest of a piece as the journal has it; undefined if it has none. */
  digest(name: string): string | undefined {
    return this.unwritten.get(name)?.digest ?? this.places.get(name)?.digest;
  }

  names(): string[] {
    return [...new Set([...this.places.keys(), ...this.unwritten.keys()])];
  }

  /** A piece that the journal has. Rejects with the system's error where it can't be read. */
  async read(name: string): Promise<Piece | undefined> {
    const unwritten = this.unwritten.get(name);
    if (unwritten !== undefined) return unwritten;
    const place = this.places.get(name);
    if (place === undefined) return undefined;
    return decodeRecord(await this.bytes(place.at, place.size));
  }

  /**
   * Writes pieces that NGINX has accepted. Rejects with the system's error where that can't be done; they are kept, and written
   * with the next ones.
   */
  async append(pieces: readonly Piece[]): Promise<void> {
    for (const piece of pieces) {
      const name = pieceName(piece);
      if (this.digest(name) === piece.digest) continue;
      if (piece.content === undefined && this.digest(name) === undefined) continue;
      this.unwritten.set(name, piece);
    }
    if (this.unwritten.size === 0) return;
    const written = [...this.unwritten.values()];
    const records = written.map(encodeRecord);
    try {
      await this.write(Buffer.concat(records));
    } catch (error) {
      // Half a record would end the journal for whoever reads it.
      await this.file.truncate(this.end).catch(() => undefined);
      throw error;
    }
    for (const [i, piece] of written.entries()) this.remember(piece, this.end, records[i].length);
    this.unwritten.clear();
    if (this.end > LEAST_TO_COMPACT && this.live < this.end / 2) await this.compact();
  }

  async close(): Promise<void> {
    await this.file.close();
  }

  private async write(bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.file.write(bytes, done, bytes.length - done, this.end + done);
      done += bytesWritten;
    }
  }

  /** Takes note of a record at `at`, where the journal ended. */
  private remember(piece: Piece, at: number, size: number): void {
    const name = pieceName(piece);
    this.live -= this.places.get(name)?.size ?? 0;
    if (piece.content === undefined) this.places.delete(name);
    else {
      this.places.set(name, { digest: piece.digest, at, size });
      this.live += size;
    }
    this.end += size;
  }

  private async bytes(at: number, size: number): Promise<Buffer> {
    const bytes = Buffer.alloc(size);
    const { bytesRead } = await this.file.read(bytes, 0, size, at);
    return bytes.subarray(0, bytesRead);
  }

  private async load(): Promise<void> {
    const { size } = await this.file.stat();
    if (!(await this.bytes(0, HEADER.length)).equals(HEADER)) {
      await this.file.truncate(0);
      await this.file.write(HEADER, 0, HEADER.length, 0);
      return;
    }
    for (;;) {
      const head = await this.bytes(this.end, 4);
      const length = head.length === 4 ? recordSize(head) : 0;
      if (length === 0 || length > LARGEST || this.end + length > size) break;
      const piece = decodeRecord(await this.bytes(this.end, length));
      if (piece === undefined) break;
      this.remember(piece, this.end, length);
    }
    if (this.end < size) await this.file.truncate(this.end);
  }

  /** Writes what counts to a new file, which takes the place of the old one whole. */
  private async compact(): Promise<void> {
    const path = `${this.path}.new`;
    await rm(path, { force: true });
    const file = await open(path, "wx+", MODE);
    const moved = new Map<string, Place>();
    let at = HEADER.length;
    try {
      await file.write(HEADER, 0, HEADER.length, 0);
      let window: Buffer[] = [];
      let waiting = 0;
      const flush = async () => {
        if (waiting > 0) await file.write(Buffer.concat(window), 0, waiting, at - waiting);
        window = [];
        waiting = 0;
      };
      for (const [name, place] of this.places) {
        window.push(await this.bytes(place.at, place.size));
        moved.set(name, { ...place, at });
        at += place.size;
        waiting += place.size;
        if (waiting >= WINDOW) await flush();
      }
      await flush();
      await file.datasync();
      await rename(path, this.path);
    } catch (error) {
      await file.close();
      await rm(path, { force: true });
      throw error;
    }
    await this.file.close();
    this.file = file;
    for (const [name, place] of moved) this.places.set(name, place);
    this.end = at;
  }
}
