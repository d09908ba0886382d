/** Table `ring`: building a ring of 1,000 peers, looking up keys and hashes, adding a peer. */
import NpmHashRing from "hashring";
import { HashRing as KetamaRing } from "ketama";
import { HashRing } from "../../core-wasm/binding/hash-ring.js";
import type { PeerSetExports } from "../../core-wasm/binding/peer-set.js";
import { loadCoreExports } from "../core.js";
import { FreshStrings } from "../fresh-strings.js";
import { type Measured, measure, measureOnce } from "../measure.js";
import { Random } from "../random.js";
import type { Row } from "../report.js";
import { balanceRows } from "./balance.js";
import { crc32, PlainRing } from "./plain-ring.js";

const PEERS = 1000;
/** More than the 5,000 answers that hashring keeps, so that it looks keys up as well. */
const KEYS = 20_000;
const HASHES = 100_000;
const TABLE = "ring";

const PEER_LIST = Array.from({ length: PEERS }, (_, i) => ({ address: `10.20.${i >> 8}.${i & 255}`, port: 8080 }));
const IDS = PEER_LIST.map(({ address, port }) => `${address}:${port}`);
const EXTRA = { address: "10.99.0.1", port: 8080 };

/** Distinct keys of 20 bytes. */
function makeKeys(): string[] {
  const random = new Random(42);
  return Array.from({ length: KEYS }, (_, i) =>
    `${i.toString(36).padStart(5, "0")}-${random.next(2 ** 31)}`.padEnd(20, "k").slice(0, 20),
  );
}

/** The two rings of one definition have to agree on every key; the others have definitions of their own, and must know their peers. */
function checkDecisions(
  ring: HashRing,
  plain: PlainRing,
  npm: NpmHashRing,
  ketama: KetamaRing,
  keys: readonly string[],
): void {
  const known = new Set(IDS);
  for (const key of keys) {
    const index = ring.lookup(key);
    const owner = index === undefined ? undefined : ring.peer(index).id;
    const other = IDS[plain.lookup(key)];
    if (owner !== other) throw new Error(`key ${key}: the core says ${owner}, plain JavaScript ${other}`);
    if (!known.has(npm.get(key))) throw new Error(`key ${key}: hashring says ${npm.get(key)}`);
    if (!known.has(ketama.getNode(key) ?? "")) throw new Error(`key ${key}: ketama says ${ketama.getNode(key)}`);
    if (ring.hash(key) !== crc32(key)) throw new Error(`key ${key}: two values of CRC-32`);
  }
}

function buildCases(core: PeerSetExports): Measured[] {
  return [
    {
      name: "build, core",
      operations: 1,
      pass: () => {
        const ring = HashRing.build({ exports: core }, PEER_LIST);
        const { points } = ring;
        ring.free();
        return points;
      },
    },
    { name: "build, plain JavaScript", operations: 1, pass: () => new PlainRing(IDS).lookupHash(0) },
    { name: "build, hashring", operations: 1, pass: () => new NpmHashRing(IDS).get("").length },
  ];
}

function keyCases(ring: HashRing, plain: PlainRing, npm: NpmHashRing, ketama: KetamaRing): Measured[] {
  const fresh = new FreshStrings(makeKeys());
  const prepare = () => fresh.renew();
  const operations = KEYS;
  const each = (lookup: (key: string) => number) => () => {
    let sum = 0;
    for (const key of fresh.strings) sum += lookup(key);
    return sum;
  };
  return [
    { name: "lookup of a 20-byte key, core", operations, prepare, pass: each((key) => ring.lookup(key) ?? 0) },
    { name: "lookup of a 20-byte key, plain JavaScript", operations, prepare, pass: each((key) => plain.lookup(key)) },
    { name: "lookup of a 20-byte key, hashring", operations, prepare, pass: each((key) => npm.get(key).length) },
    {
      name: "lookup of a 20-byte key, ketama",
      operations,
      prepare,
      pass: each((key) => ketama.getNode(key)?.length ?? 0),
    },
  ];
}

/** The batch is in the core's memory already: what is measured is the core, not the copying. */
function hashCases(core: PeerSetExports, ring: HashRing, plain: PlainRing): { cases: Measured[]; free: () => void } {
  const random = new Random(7);
  const hashes = Uint32Array.from({ length: HASHES }, () => random.next(2 ** 32));
  const image = ring.image();
  const pointers = [image.length, HASHES * 4, HASHES * 4].map((size) => core.alloc(size));
  const [at, input, output] = pointers;
  new Uint8Array(core.memory.buffer).set(image, at);
  new Uint32Array(core.memory.buffer, input, HASHES).set(hashes);
  if (core.peer_set_lookup_many(at, input, HASHES, output) !== HASHES) throw new Error("the batch was refused");
  const owners = new Uint32Array(core.memory.buffer, output, HASHES);
  hashes.forEach((hash, i) => {
    if (owners[i] !== plain.lookupHash(hash)) throw new Error(`hash ${hash}: two owners`);
  });
  const cases: Measured[] = [
    {
      name: "lookup of a hash, batch inside the core",
      operations: HASHES,
      pass: () => core.peer_set_lookup_many(at, input, HASHES, output),
    },
    {
      name: "lookup of a hash, plain JavaScript",
      operations: HASHES,
      pass: () => {
        let sum = 0;
        for (const hash of hashes) sum += plain.lookupHash(hash);
        return sum;
      },
    },
  ];
  return { cases, free: () => pointers.forEach((pointer) => void core.free(pointer)) };
}

/** Adding and taking out again, so that every pass begins with the same ring; an operation is one of the two. */
function changeCase(ring: HashRing): Measured {
  return {
    name: "add or remove one of 1,000 peers, core",
    operations: 2,
    pass: () => {
      ring.add(EXTRA);
      ring.remove(EXTRA);
      return ring.size;
    },
  };
}

/** Measures the table. Throws if two rings of one definition disagree. */
export async function ringTable(): Promise<Row[]> {
  const core = await loadCoreExports();
  const ring = HashRing.build({ exports: core }, PEER_LIST);
  const plain = new PlainRing(IDS);
  const npm = new NpmHashRing(IDS);
  // Seconds: it is built once, and that is what is measured.
  let ketama = new KetamaRing<string>([]);
  const ketamaTime = measureOnce(1, () => {
    ketama = new KetamaRing(IDS);
  });
  checkDecisions(ring, plain, npm, ketama, makeKeys());

  const built = measure(buildCases(core), { time: 400, passes: 3 });
  const looked = measure(keyCases(ring, plain, npm, ketama));
  const batch = hashCases(core, ring, plain);
  const hashed = measure(batch.cases);
  const changed = measure([changeCase(ring)]);
  batch.free();
  ring.free();

  const rows = (times: Map<string, number>, goals: Record<string, Row["goal"]> = {}): Row[] => {
    const [reference] = times.values();
    return [...times].map(([name, ns]) => ({ table: TABLE, name, ns, ratio: ns / reference, goal: goals[name] }));
  };
  const [buildTime] = built.values();
  const [[changeName, changeTime]] = changed;
  return [
    ...rows(built, { "build, hashring": { of: "ratio", atLeast: 80 } }),
    {
      table: TABLE,
      name: "build, ketama (50 points a peer)",
      ns: ketamaTime * 1e6,
      ratio: (ketamaTime * 1e6) / buildTime,
    },
    ...rows(looked, { "lookup of a 20-byte key, hashring": { of: "ratio", atLeast: 20 } }),
    ...rows(hashed, { "lookup of a hash, batch inside the core": { of: "ns", atMost: 25 } }),
    { table: TABLE, name: changeName, ns: changeTime },
    {
      table: TABLE,
      name: "build, against adding or removing one peer",
      ns: buildTime,
      ratio: buildTime / changeTime,
      goal: { of: "ratio", atLeast: 5 },
    },
    ...(await balanceRows()),
  ];
}
