/** Rows of table `ring` about balancing: Maglev, bounded load, and what a pick costs by each method. */
import { loadCore } from "../../controller/core-file.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { compilePeerSet, encodePeerSet, peerSetSizes, readPeer } from "../../core-wasm/binding/peer-set.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { BalanceMethod, Peer } from "../../core-wasm/binding/source.js";
import { type Measured, measure } from "../measure.js";
import { Random } from "../random.js";
import type { Row } from "../report.js";

const TABLE = "ring";
const KEY = "bench";
const HASHES = 100_000;
const PICKS = 10_000;
/** Words of a context that a pick writes, see ABI.md. */
const TABLE_WORD = 1;
const PEER = 14;
const HASHED = ["ring", "nginx-ring", "maglev"] as const;
const OTHERS = ["round-robin", "least-conn", "random", "random-two", "ip-hash"] as const;

function peers(count: number): Peer[] {
  return Array.from({ length: count }, (_, i) => ({ address: `10.20.${i >> 8}.${i & 255}`, port: 8080, weight: 1 }));
}

/** One upstream, picked from by the numeric interface. */
class Picking {
  readonly #table: RouteTable;
  readonly #key: number;
  readonly #tokens: Uint32Array;

  constructor(
    private readonly core: Core,
    readonly method: BalanceMethod,
    count: number,
  ) {
    this.#table = new RouteTable(core);
    this.#table.setPeers({ key: KEY, display: KEY, method, peers: peers(count) });
    this.#key = core.place(new TextEncoder().encode(KEY));
    // Tokens stand behind the image, at the next multiple of 4.
    const image = core.exports.peers_find(this.#table.context.word(TABLE_WORD), this.#key, KEY.length);
    const { bytes } = peerSetSizes(new DataView(core.exports.memory.buffer), image);
    this.#tokens = new Uint32Array(core.exports.memory.buffer, (image + bytes + 3) & ~3, count).slice();
  }

  /** Index of the peer of a request, which stays under way. */
  pick(hash: number, random: number): number {
    const context = this.#table.context.pointer;
    const hashed = "key" in this.method || this.method.kind === "ip-hash" ? 1 : 0;
    const status = this.core.exports.peer_pick(context, this.#key, KEY.length, hashed, hash, 0, 0, random);
    if (status !== 0) throw new Error(`picking answered ${status}`);
    return this.#table.context.word(PEER);
  }

  done(peer: number): void {
    this.core.exports.peer_done(this.#table.context.pointer, this.#tokens[peer], 0);
  }

  conns(): number[] {
    return this.#table.peersOf(KEY).map((peer) => peer.conns);
  }

  free(): void {
    this.core.exports.free(this.#key);
    this.#table.free();
  }
}

function methodOf(kind: (typeof HASHED)[number] | (typeof OTHERS)[number], bounded = false): BalanceMethod {
  return kind === "ring" || kind === "nginx-ring" || kind === "maglev" ? { kind, key: ["x"], bounded } : { kind };
}

/** The fullest peer of 1,000 against the mean, with `HASHES` requests under way by even hashes. */
function boundedPeak(core: Core, kind: "ring" | "maglev"): number {
  const picking = new Picking(core, methodOf(kind, true), 1000);
  const random = new Random(5);
  for (let i = 0; i < HASHES; i++) picking.pick(random.next(2 ** 32) | 0, 0);
  const conns = picking.conns();
  picking.free();
  return Math.max(...conns) / (HASHES / conns.length);
}

function maglevRows(core: Core): Row[] {
  const { exports } = core;
  const source = core.place(encodePeerSet(setOf("maglev"), new Uint8Array(0)));
  const length = encodePeerSet(setOf("maglev"), new Uint8Array(0)).length;
  const image = compilePeerSet(exports, source, length, 0);
  const view = new DataView(exports.memory.buffer);
  const { peers: count, points } = peerSetSizes(view, image);
  const owners = new Uint16Array(exports.memory.buffer, image + view.getUint32(image + 44, true), points);
  const shares = new Uint32Array(count);
  for (const owner of owners) shares[owner]++;
  if (readPeer(view, image, 0).port !== 8080) throw new Error("the image has other peers");
  const random = new Random(7);
  const hashes = core.place(new Uint8Array(Uint32Array.from({ length: HASHES }, () => random.next(2 ** 32)).buffer));
  const out = exports.alloc(HASHES * 4);
  const times = measure([
    {
      name: "build Maglev, core",
      operations: 1,
      pass: () => {
        const built = compilePeerSet(exports, source, length, 0);
        exports.free(built);
        return built;
      },
    },
    {
      name: "lookup of a hash with Maglev, batch inside the core",
      operations: HASHES,
      pass: () => exports.peer_set_lookup_many(image, hashes, HASHES, out),
    },
  ]);
  for (const block of [source, image, hashes, out]) exports.free(block);
  return [
    ...[...times].map(([name, ns]) => ({ table: TABLE, name, ns })),
    {
      table: TABLE,
      name: "places of a peer with Maglev, peak/average",
      value: { amount: Math.max(...shares) / (points / count), unit: "x" },
      goal: { of: "value", atMost: 1.01 },
    },
  ];
}

function setOf(kind: "maglev") {
  return { key: KEY, display: KEY, method: methodOf(kind), peers: peers(1000) };
}

/** A pick and its end, by each method, with hashes and random numbers that are made before. */
function pickRows(core: Core, count: number): Row[] {
  const random = new Random(9);
  const numbers = Int32Array.from({ length: PICKS }, () => random.next(2 ** 32) | 0);
  const made: Picking[] = [];
  const cases = [
    ...[...OTHERS, ...HASHED].map((kind) => ({ name: kind as string, method: methodOf(kind) })),
    { name: "ring, bounded", method: methodOf("ring", true) },
  ].map(({ name, method }): Measured => {
    const picking = new Picking(core, method, count);
    made.push(picking);
    return {
      name: `pick of ${count.toLocaleString("en-US")} peers and its end, ${name}`,
      operations: PICKS,
      pass: () => {
        let sum = 0;
        for (const number of numbers) {
          const peer = picking.pick(number, number);
          picking.done(peer);
          sum += peer;
        }
        return sum;
      },
    };
  });
  const times = measure(cases, { rounds: 3, time: 60, passes: 2 });
  for (const picking of made) picking.free();
  return [...times].map(([name, ns]) => ({ table: TABLE, name, ns }));
}

/** Measures the rows. */
export async function balanceRows(): Promise<Row[]> {
  const core = await loadCore();
  const bound: Row["goal"] = { of: "value", atMost: 1.25 };
  const peaks = (["ring", "maglev"] as const).map((kind): Row => {
    const value = { amount: boundedPeak(core, kind), unit: "x" };
    return { table: TABLE, name: `requests under way with ${kind}, bounded, peak/average`, value, goal: bound };
  });
  return [...maglevRows(core), ...peaks, ...pickRows(core, 20), ...pickRows(core, 1000)];
}
