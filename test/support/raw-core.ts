/** The numeric interface of the core, used as a host program in another language would. */
import type { Core } from "../../core-wasm/binding/core.js";
import type { CoreExports } from "../../core-wasm/binding/core-exports.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { HostRules, PeerSetSource } from "../../core-wasm/binding/source.js";

/** Offsets of public words of a context; the layout is in assembly/table/context.ts. */
export const WORDS = {
  input: 8,
  inputCapacity: 12,
  output: 16,
  outputCapacity: 20,
  needCount: 24,
  needs: 28,
  action: 32,
  status: 36,
  route: 40,
  shard: 44,
  upstream: 48,
  peers: 52,
  peer: 56,
  text: 60,
  textLength: 64,
  type: 68,
  typeLength: 72,
  settings: 76,
  settingsLength: 80,
  origin: 84,
  rendered: 88,
  traceCount: 92,
  trace: 96,
  position: 100,
} as const;

/** Bytes of one entry of the needs. */
export const NEED_SIZE = 16;

const FACT_NAMES = ["address", "port", "method", "protocol"];

/** Images of rules and peers, made in a table of their own. */
export function compileImages(core: Core, rules: readonly HostRules[], sets: readonly PeerSetSource[] = []) {
  const table = new RouteTable(core);
  const images = { shards: rules.map((r) => table.compileHost(r)), sets: sets.map((s) => table.compilePeers(s)) };
  table.free();
  return images;
}

/** A table and a context of the numeric interface. */
export class RawTable {
  readonly exports: CoreExports;
  readonly table: number;
  readonly context: number;

  constructor(
    readonly core: Core,
    inputCapacity = 4096,
    outputCapacity = 16384,
  ) {
    this.exports = core.exports;
    this.table = this.exports.table_new();
    this.context = this.exports.context_new(this.table, inputCapacity, outputCapacity);
  }

  load(rules: readonly HostRules[], sets: readonly PeerSetSource[] = []): void {
    const images = compileImages(this.core, rules, sets);
    for (const image of images.shards)
      this.core.withBytes(image, (at, n) => this.exports.shard_load(this.table, at, n));
    for (const image of images.sets) this.core.withBytes(image, (at, n) => this.exports.peers_load(this.table, at, n));
  }

  word(offset: number, base = this.context): number {
    return new DataView(this.exports.memory.buffer).getUint32(base + offset, true);
  }

  setWord(address: number, value: number): void {
    new DataView(this.exports.memory.buffer).setUint32(address, value, true);
  }

  text(start: number, length: number): string {
    return Buffer.from(this.exports.memory.buffer, start, length).toString("latin1");
  }

  /** The target, location or body of the decision. */
  answer(): string {
    return this.text(this.word(WORDS.text), this.word(WORDS.textLength));
  }

  write(address: number, text: string): void {
    Buffer.from(this.exports.memory.buffer).write(text, address, "latin1");
  }

  route(host: string, target: string, flags = 0, random = 0): number {
    this.write(this.word(WORDS.input), host.padEnd((host.length + 3) & ~3, "\0") + target);
    return this.exports.route(this.context, host.length, target.length, flags, random);
  }

  /** What the core asks for: facts and headers by name. */
  needs(): string[] {
    return Array.from({ length: this.word(WORDS.needCount) }, (_, i) => {
      const id = this.word(NEED_SIZE * i, this.word(WORDS.needs));
      return FACT_NAMES[id] ?? this.text(id + 4, this.word(0, id));
    });
  }

  /**
   * Decides a request and answers with what was asked for, round by round. Values stay in memory until the next change.
   * Names that `values` lacks are left absent.
   */
  decide(host: string, target: string, values: Record<string, string> = {}): { status: number; rounds: string[][] } {
    const rounds: string[][] = [];
    let status = this.route(host, target);
    while (status === 1) {
      const names = this.needs();
      rounds.push(names);
      for (const [i, name] of names.entries()) {
        const value = values[name];
        if (value === undefined) continue;
        const at = this.exports.alloc(value.length);
        this.write(at, value);
        this.setWord(this.word(WORDS.needs) + NEED_SIZE * i + 4, at);
        this.setWord(this.word(WORDS.needs) + NEED_SIZE * i + 8, value.length);
      }
      status = this.exports.resume(this.context);
    }
    return { status, rounds };
  }

  free(): void {
    this.exports.table_free(this.table);
  }
}
