/** Makes the suite that every host replays. README.md describes its files. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseRequestSpec } from "../../controller/cli/request-line.js";
import { bundleOf } from "../../controller/model/bundle.js";
import { BUNDLE_KIND, type BundleRecord, writeBundle } from "../../core-wasm/binding/bundle.js";
import type { Core } from "../../core-wasm/binding/core.js";
import type { RequestInput } from "../../core-wasm/binding/decision.js";
import { loadBundle, peerSetKey, shardPattern } from "../../core-wasm/binding/load-bundle.js";
import { FEATURE_PEERS, FEATURE_RULES, FEATURE_TARGETS } from "../core/feature-tables.js";
import { modelOf, strictVectors } from "../model/model-support.js";
import { RandomTraffic } from "../native/random-traffic.js";
import { Random } from "../support/random.js";
import { compileImages } from "../support/raw-core.js";
import type { SuiteRequest } from "./decision-line.js";
import { replayLines } from "./replay.js";

/** A bundle with the requests that are decided over it. */
export interface SuiteCase {
  name: string;
  bundle: Uint8Array;
  requests: SuiteRequest[];
}

/** Each request of a vector is decided so often, each time with other random numbers and at another time. */
const REPEATS = 4;
const RANDOM_BUNDLES = 12;
const RANDOM_REQUESTS = 400;
const CLIENTS = ["127.0.0.1", "10.1.2.3", "2001:db8::1", "198.51.100.7"];

/** Everything that hosts are compared by; the same at each call. */
export function suiteCases(core: Core): SuiteCase[] {
  return [...vectorCases(core), featureCase(core), ...randomCases(core)];
}

function vectorCases(core: Core): SuiteCase[] {
  return strictVectors().map(({ name, objects, cases }) => {
    const random = new Random(name.length);
    const { bytes: bundle } = bundleOf(modelOf(objects).snapshot(), core);
    const requests = cases.flatMap(({ request }) => {
      const names = Object.keys(request.headers ?? {}).map((header) => header.toLowerCase());
      const first = suiteRequest(parseRequestSpec(request), ["host", ...names], 0, 0);
      const others = Array.from({ length: REPEATS - 1 }, () => ({
        ...first,
        client: [random.pick(CLIENTS), random.below(65_536)] satisfies SuiteRequest["client"],
        random: random.word(),
        now: random.word(),
      }));
      return [first, ...others];
    });
    return { name, bundle, requests };
  });
}

function featureCase(core: Core): SuiteCase {
  const random = new Random(3);
  const { shards, sets } = compileImages(core, FEATURE_RULES, FEATURE_PEERS);
  const hosts = ["example.com", "a.wild.example.com", "x.y.example.com", "elsewhere.test", "", "bad host"];
  const values = {
    "x-a": ["yes", "no"],
    "x-b": ["AbC", "x"],
    cookie: ["session=abc; njet=0", "session="],
    "x-user": ["u1"],
  };
  const requests = Array.from({ length: 1_500 }, (): SuiteRequest => {
    const headers = Object.entries(values).filter(() => random.onceIn(2));
    return {
      method: random.pick(["GET", "POST"]),
      scheme: random.pick(["http", "https"] as const),
      host: random.pick(hosts),
      target: utf8(random.pick(FEATURE_TARGETS)),
      protocol: random.pick(["HTTP/1.1", "HTTP/2.0"]),
      headers: headers.map(([name, list]) => [name, random.pick(list)]),
      client: [random.pick(CLIENTS), random.below(65_536)],
      random: random.word(),
      now: random.word(),
    };
  });
  return { name: "features", bundle: bundleOfImages(shards, sets), requests };
}

function randomCases(core: Core): SuiteCase[] {
  return Array.from({ length: RANDOM_BUNDLES }, (_, i) => {
    const random = new Random(100 + i);
    const traffic = new RandomTraffic(core, random);
    const shards = Array.from({ length: 40 }, () => traffic.shard().image);
    const sets = Array.from({ length: 120 }, () => traffic.peerSet());
    const bundle = bundleOfImages(shards, sets);
    const { table } = loadBundle(core, bundle);
    const requests = Array.from({ length: RANDOM_REQUESTS }, () => {
      const input = traffic.request();
      // Which headers there are to be is known once a rule has asked for them.
      const names = new Set<string>();
      const header = (name: string) => {
        names.add(name);
        return input.header(name);
      };
      const [word, now] = [random.word(), random.word()];
      table.decide({ ...input, header }, word, now);
      return suiteRequest(input, names, word, now);
    });
    table.free();
    return { name: `random-${i}`, bundle, requests };
  });
}

/** Text as the bytes that it has on the wire, one character a byte. */
function utf8(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

function suiteRequest(input: RequestInput, names: Iterable<string>, random: number, now: number): SuiteRequest {
  const { method, scheme, host, target, protocol, clientAddress, clientPort } = input;
  const headers = [...new Set(names)].flatMap((name): SuiteRequest["headers"] => {
    const value = input.header(name);
    return value === undefined ? [] : [[utf8(name), value]];
  });
  return { method, scheme, host, target, protocol, headers, client: [clientAddress, clientPort], random, now };
}

/** A bundle of images; of several for one key the last one counts. */
function bundleOfImages(shards: readonly Uint8Array[], sets: readonly Uint8Array[]): Uint8Array {
  const records = new Map<string, BundleRecord>();
  const add = (kind: number, key: string, content: Uint8Array) => records.set(`${kind} ${key}`, { kind, key, content });
  for (const image of shards) add(BUNDLE_KIND.shard, shardPattern(image), image);
  for (const image of sets) add(BUNDLE_KIND.peerSet, peerSetKey(image), image);
  return writeBundle(records.values());
}

/**
 * Writes the suite into an empty folder, with what Node decides as `decisions.jsonl`. Answers those lines.
 */
export function writeSuite(core: Core, folder: string): string {
  const cases = suiteCases(core);
  const sums: Record<string, string> = {};
  const lines: string[] = [];
  for (const { name, bundle, requests } of cases) {
    const file = `${name}.njkb`;
    writeFileSync(join(folder, file), bundle);
    sums[file] = createHash("sha256").update(bundle).digest("hex");
    lines.push(JSON.stringify({ bundle: file }), ...requests.map(requestLine));
  }
  writeFileSync(
    join(folder, REQUESTS),
    [JSON.stringify({ format: 1, bundles: sums }), ...lines, ""].join("\n"),
    "latin1",
  );
  const decisions = replay(core, folder);
  writeFileSync(join(folder, "decisions.jsonl"), decisions);
  return decisions;
}

const REQUESTS = "requests.jsonl";

/** Replays the suite in a folder with core.wasm and the TypeScript binding. Answers the lines of all decisions. */
export function replay(core: Core, folder: string): string {
  const requests = readFileSync(join(folder, REQUESTS), "latin1");
  return replayLines(core, requests, (file) => readFileSync(join(folder, file)));
}

/** One line of JSON in ASCII. */
function requestLine(request: SuiteRequest): string {
  return JSON.stringify(request).replaceAll(/[^\x20-\x7e]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
