/** Replays the suite of conformance through the filter: in the small host, and in a real Envoy. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SuiteRequest } from "../conformance/decision-line.js";
import { encodeHeaderMap } from "./header-map.js";
import { ProxyWasmHost } from "./proxy-wasm-host.js";
import { type EnvoyOptions, managerOf, RunningEnvoy } from "./running-envoy.js";

/** Lets the filter answer questions. */
export const SECRET = "secret-of-the-conformance-suite";

/** Answers what would be decided; `bundle` is called before the first request of each bundle. */
interface Replayed {
  bundle(bytes: Buffer): Promise<void>;
  ask(request: SuiteRequest): Promise<string>;
}

async function replay(folder: string, host: Replayed): Promise<string> {
  const lines: string[] = [];
  const [, ...entries] = readFileSync(join(folder, "requests.jsonl"), "latin1").trimEnd().split("\n");
  for (const entry of entries) {
    const value = JSON.parse(entry) as SuiteRequest | { bundle: string };
    if ("bundle" in value) await host.bundle(readFileSync(join(folder, value.bundle)));
    else lines.push(await host.ask(value));
  }
  return lines.join("");
}

/** The value of the header that asks about a request as it stands, also where no client could send it. */
export function questionOf(request: SuiteRequest): string {
  return `${SECRET} ${request.random} ${request.now} ${encodeHeaderMap(headersOf(request)).toString("hex")}`;
}

function headersOf({ method, scheme, host, target, protocol, headers, client }: SuiteRequest): [string, string][] {
  const [address, port] = client;
  return [
    [":authority", host],
    [":path", target],
    [":method", method],
    [":scheme", scheme],
    [":protocol", protocol],
    [":source", `${address.includes(":") ? `[${address}]` : address}:${port}`],
    ...headers,
  ];
}

/** The filter outside of Envoy. */
export async function replayInHost(folder: string): Promise<string> {
  let host = new ProxyWasmHost();
  let plugin = 0;
  return replay(folder, {
    async bundle(bytes) {
      host = new ProxyWasmHost({ options: `decide=${SECRET}` });
      const id = host.configure(bytes);
      if (id === undefined) throw new Error(`the filter refuses a bundle: ${host.logged.join("; ")}`);
      plugin = id;
    },
    async ask(request) {
      const { id, answer } = host.request(plugin, [["x-njet-decide", questionOf(request)]]);
      host.end(id);
      return answer?.body ?? `no answer to ${JSON.stringify(request)}\n`;
    },
  });
}

/** The filter in a worker of a real Envoy. */
export async function replayInEnvoy(folder: string): Promise<string> {
  let envoy: RunningEnvoy | undefined;
  try {
    return await replay(folder, {
      async bundle(bytes) {
        if (envoy === undefined) envoy = await RunningEnvoy.start({ bundle: bytes, ...ASKED });
        else envoy.write(bytes);
        await envoy.serves(bytes, SECRET);
      },
      async ask(request) {
        const answer = await envoy?.get("any.example.com", "/", { "x-njet-decide": questionOf(request) });
        return answer?.status === 200 ? answer.body : `${answer?.status} ${JSON.stringify(request)}\n`;
      },
    });
  } finally {
    await envoy?.close();
  }
}

/** Questions about the longest requests are themselves long. */
const ASKED: Pick<EnvoyOptions, "options" | "edit"> = {
  options: [`decide=${SECRET}`],
  edit: ({ static_resources: { listeners } }) => {
    managerOf(listeners[0]).max_request_headers_kb = 1024;
  },
};
