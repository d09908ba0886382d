/** Table `native`: what a decision costs inside a worker of NGINX, against core.wasm in Node in the same run. */

import { loadCore } from "../../controller/core-file.js";
import { findNginx, nativeCore } from "../../controller/proxies/nginx/parts.js";
import { ACTION, ROUTE } from "../../core-wasm/binding/context.js";
import { compilePeerSetImage, compileShardImage } from "../../core-wasm/binding/images.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import { Nginx } from "../../test/support/nginx.js";
import { FreshStrings } from "../fresh-strings.js";
import { median } from "../measure.js";
import type { Row } from "../report.js";
import { benchRequest } from "../route/core-adapter.js";
import { hostRules, UPSTREAMS } from "../route/host-rules.js";
import { makeWorkload, SIZES, type Workload } from "../route/workload.js";

const TABLE = "native";
const REQUESTS = 20_000;
const ROUNDS = 7;
/** Passes of a measurement: enough that the clock's resolution does not count. */
const PASSES = 5;
const PROXY = 1;

/** What of the three the worker and Node both do. */
const CASES = ["call", "route", "decide"] as const;
type Case = (typeof CASES)[number];
const NAMES: Record<Case, string> = {
  call: "a call that does nothing",
  route: "a decision, host and target copied in",
  decide: "a decision, and all that is read of it",
};

/** Texts, each a length of 4 little-endian bytes and bytes. */
function packed(texts: readonly (string | Uint8Array)[]): Buffer {
  const parts = texts.flatMap((text) => {
    const bytes = Buffer.from(text as string, "latin1");
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  });
  return Buffer.concat(parts);
}

/** The core in this process: nanoseconds for each operation, and a number that depends on every decision. */
class NodeSide {
  readonly #hosts: FreshStrings;
  readonly #targets: FreshStrings;

  constructor(
    private readonly table: RouteTable,
    private readonly abiVersion: () => number,
    workload: Workload,
  ) {
    this.#hosts = new FreshStrings(workload.requests.map(({ host }) => host));
    this.#targets = new FreshStrings(workload.requests.map(({ target }) => target));
  }

  measure(name: Case): { ns: number; sum: number } {
    let time = 0;
    let sum = 0;
    for (let pass = 0; pass < PASSES; pass++) {
      this.#hosts.renew();
      this.#targets.renew();
      const start = performance.now();
      sum = this[name]();
      time += performance.now() - start;
    }
    return { ns: (time * 1e6) / (PASSES * REQUESTS), sum };
  }

  private call(): number {
    let sum = 0;
    for (let i = 0; i < REQUESTS; i++) sum += this.abiVersion();
    return sum;
  }

  private route(): number {
    const { context } = this.table;
    let sum = 0;
    for (let i = 0; i < REQUESTS; i++) {
      context.route(this.#hosts.strings[i], this.#targets.strings[i], false, 0);
      if (context.word(ACTION) === PROXY) sum += context.word(ROUTE) + 1;
    }
    return sum;
  }

  private decide(): number {
    let sum = 0;
    for (let i = 0; i < REQUESTS; i++) {
      const decision = this.table.decide(benchRequest(this.#hosts.strings[i], this.#targets.strings[i]), 0);
      if (decision.action === "proxy") sum += decision.target.length;
    }
    return sum;
  }
}

/** The worker, with the same images and requests. */
class WorkerSide {
  private constructor(private readonly nginx: Nginx) {}

  static async start(images: { shards: Uint8Array[]; sets: Uint8Array[] }, workload: Workload): Promise<WorkerSide> {
    const library = await nativeCore();
    const nginx = await Nginx.start(await findNginx({ unpacked: true }), {
      server: ["load", "requests", "measure"]
        .map((name) => `location = /${name} { content_by_lua_block { require("bench.native.worker").${name}() } }`)
        .concat("location = / { return 200; }")
        .join("\n"),
    });
    const side = new WorkerSide(nginx);
    await side.#ask("/load", packed([library, String(images.shards.length), ...images.shards, ...images.sets]));
    await side.#ask("/requests", packed(workload.requests.flatMap(({ host, target }) => [host, target])));
    return side;
  }

  async #ask(path: string, body?: Uint8Array): Promise<string> {
    const answer = body ? await this.nginx.post(path, body) : await this.nginx.get(path);
    if (answer.status !== 200) throw new Error(`the worker answered ${answer.status}: ${this.nginx.errorLog()}`);
    return answer.body.toString();
  }

  async measure(name: Case, compiled: boolean): Promise<{ ns: number; sum: number }> {
    const answer = await this.#ask(`/measure?case=${name}&rounds=${PASSES}&jit=${compiled ? "on" : "off"}`);
    const [ns, sum] = answer.split(" ").map(Number);
    return { ns, sum };
  }

  close(): Promise<void> {
    return this.nginx.close();
  }
}

/** Images of the workload. */
async function imagesOf({ routes, size }: Workload) {
  const core = await loadCore();
  const sets = UPSTREAMS.map((key, i) => {
    const peers = [1, 2, 3].map((host) => ({ address: `10.0.${i}.${host}`, port: 8080, weight: 1 }));
    return compilePeerSetImage(core, { key, display: key, method: { kind: "round-robin" }, peers });
  });
  const shards: Uint8Array[] = [];
  for (let first = 0; first < routes.length; first += size.pathsPerHost) {
    shards.push(compileShardImage(core, hostRules(routes.slice(first, first + size.pathsPerHost), first)));
  }
  const table = new RouteTable(core);
  for (const image of sets) table.loadPeers(image);
  for (const image of shards) table.loadHost(image);
  return { core, table, images: { shards, sets } };
}

async function sizeRows(workload: Workload): Promise<Row[]> {
  const { core, table, images } = await imagesOf(workload);
  const node = new NodeSide(table, core.exports.abi_version, workload);
  const worker = await WorkerSide.start(images, workload);
  const rows: Row[] = [];
  try {
    for (const name of CASES) {
      const times: [number[], number[], number[]] = [[], [], []];
      for (let round = 0; round <= ROUNDS; round++) {
        const taken = [await worker.measure(name, true), node.measure(name), await worker.measure(name, false)];
        if (new Set(taken.map(({ sum }) => sum)).size > 1)
          throw new Error(`${name}: worker and Node decide differently`);
        // The first round warms up.
        if (round > 0) for (const [i, { ns }] of taken.entries()) times[i].push(ns);
      }
      const [compiled, inNode, interpreted] = times.map(median);
      const title = `${workload.size.name}: ${NAMES[name]}`;
      const goal = name === "call" ? ({ of: "ns", atMost: 100 } as const) : undefined;
      rows.push(
        { table: TABLE, name: `${title}, in a worker`, ns: compiled, ratio: 1, goal },
        { table: TABLE, name: `${title}, in Node`, ns: inNode, ratio: inNode / compiled },
        { table: TABLE, name: `${title}, in a worker without JIT`, ns: interpreted, ratio: interpreted / compiled },
      );
    }
  } finally {
    await worker.close();
  }
  return rows;
}

/** Rows of the table. Needs Debian's NGINX and a C compiler; throws what is missing. */
export async function nativeTable(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const size of SIZES.filter(({ name }) => name === "1k" || name === "10k")) {
    rows.push(...(await sizeRows(makeWorkload(size, REQUESTS))));
  }
  return rows;
}
