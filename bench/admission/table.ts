/** Table `admission`: what the validating webhook costs, by the number of objects in the model. */
import { Agent, request } from "node:https";
import { AdmissionServer } from "../../controller/admission/admission-server.js";
import { loadCore } from "../../controller/core-file.js";
import { type ObjectChange, RoutingModel } from "../../controller/model/routing-model.js";
import { AdmissionCounters } from "../../controller/observability/admission-counters.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { selfSigned } from "../../controller/proxies/self-signed.js";
import type { PatternChecker } from "../../core-wasm/binding/api.js";
import { type Measured, measure } from "../measure.js";
import type { Row } from "../report.js";
import { ingress, objects, reviewText, virtualServer } from "./objects.js";

const TABLE = "admission";
const SMALL = 100;
const LARGE = 10_000;
/** Probes of a pass. */
const PROBES = 200;
/** Ingresses that share a host. */
const SHARING = 1_000;
/** Requests of a round. The rounds of the cases take turns; of each figure the least one counts. */
const REQUESTS = 1_000;
const ROUNDS = 7;
const QUANTILES = [
  ["p50", 0.5],
  ["p99", 0.99],
] as const;
const DAY = 86_400_000;

type State = "Valid" | "Warning" | "Invalid";

/** A case that asks about one object again and again; throws where the answer is another than is expected. */
function probing(name: string, model: RoutingModel, change: ObjectChange, expected: State): Measured {
  const ask = () => {
    const state = model.probe(change).state?.state;
    if (state !== expected) throw new Error(`${name}: ${state} instead of ${expected}`);
  };
  ask();
  return {
    name,
    operations: PROBES,
    pass: () => {
      for (let i = 0; i < PROBES; i++) ask();
      return PROBES;
    },
  };
}

function modelRows(checker: PatternChecker): { rows: Row[]; large: RoutingModel } {
  const make = (count: number, more: ObjectChange[] = []) => {
    const model = new RoutingModel({ checker, source: "folder" });
    model.update([...objects(count), ...more]);
    return model;
  };
  const [small, large] = [make(SMALL), make(LARGE)];
  const shared = make(
    SMALL,
    Array.from({ length: SHARING }, (_, index) => ingress(SMALL + index, "shared.example.com")),
  );
  const about = { "a changed Ingress": ingress(8), "a changed VirtualServer": virtualServer(7) };
  const taken = virtualServer(LARGE + 1, "site-8.example.com");
  const groups = Object.entries(about).map(([what, change]) => [
    probing(`${what}, ${SMALL} objects`, small, change, "Valid"),
    probing(`${what}, ${LARGE} objects`, large, change, "Valid"),
  ]);
  const others = [
    probing(`a host that is taken, ${LARGE} objects`, large, taken, "Warning"),
    probing(`one of ${SHARING} Ingresses of one host`, shared, ingress(SMALL + 1, "shared.example.com"), "Warning"),
  ];
  const times = measure([...groups.flat(), ...others]);
  const timeOf = ({ name }: Measured) => times.get(name) ?? Number.NaN;
  const row = (one: Measured, reference?: Measured): Row => ({
    table: TABLE,
    name: one.name,
    ns: timeOf(one),
    ...(reference && { ratio: timeOf(one) / timeOf(reference), goal: { of: "ratio", atMost: 1.5 } as const }),
  });
  return {
    large,
    rows: [...groups.flatMap(([few, many]) => [row(few), row(many, few)]), ...others.map((one) => row(one))],
  };
}

/** Milliseconds from a request to its answer, sorted. The connection is kept, as the API server keeps it. */
async function timesOf(port: number, ca: string, texts: readonly string[], allowed: boolean): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, servername: "webhook.example.com" });
  const times: number[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const begun = performance.now();
    const answer = await post(port, agent, texts[i % texts.length]);
    times.push(performance.now() - begun);
    if (!answer.includes(`"allowed":${allowed}`)) throw new Error(`the webhook answered ${answer}`);
  }
  agent.destroy();
  return times.sort((a, b) => a - b);
}

function post(port: number, agent: Agent, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
    const sent = request({ host: "127.0.0.1", port, path: "/validate", method: "POST", agent, headers }, (answer) => {
      let body = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        body += part;
      });
      answer.on("end", () => resolve(body));
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

async function serverRows(model: RoutingModel, checker: PatternChecker): Promise<Row[]> {
  const now = Date.now();
  const hosts = ["webhook.example.com"];
  const pair = selfSigned({ commonName: "bench", hosts, notBefore: now - DAY, notAfter: now + DAY });
  const server = new AdmissionServer({
    model,
    checker,
    follows: () => true,
    complete: () => true,
    now: Date.now,
    counters: new AdmissionCounters(),
    logger: silentLogger,
    clientCertificates: false,
  });
  server.use({ cert: pair.chain, key: pair.key });
  const { port } = await server.listen("127.0.0.1", 0);
  const some = Array.from({ length: 400 }, (_, index) =>
    index % 2 ? virtualServer(4 * index + 3) : ingress(4 * index),
  );
  const cases: [string, string[], boolean][] = [
    ["a deletion, which is not looked at", some.map((change) => reviewText(change, "DELETE")), true],
    ["a good object", some.map((change) => reviewText(change)), true],
    [
      "a host that is taken",
      some.map((_, index) => reviewText(virtualServer(LARGE + index, `site-${4 * index}.example.com`))),
      false,
    ],
  ];
  const least = new Map<string, number>();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, texts, allowed] of cases) {
      const times = await timesOf(port, pair.chain, texts, allowed);
      // The first round warms up.
      if (round === 0) continue;
      for (const [quantile, share] of QUANTILES) {
        const key = `${name}, ${quantile}`;
        least.set(key, Math.min(least.get(key) ?? Infinity, times[Math.floor(times.length * share)]));
      }
    }
  }
  await server.close();
  return [...least].map(([name, amount]) => ({
    table: TABLE,
    name: `over TLS, ${LARGE} objects: ${name}`,
    value: { amount, unit: "ms" },
    ...(name.endsWith("p99") && { goal: { of: "value", atMost: 10 } as const }),
  }));
}

/** Measures the table. Throws if anything is answered otherwise than the objects say. */
export async function admissionTable(): Promise<Row[]> {
  const core = await loadCore();
  const { rows, large } = modelRows(core);
  return [...rows, ...(await serverRows(large, core))];
}
