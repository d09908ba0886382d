/** Another program that is faster than a server to have the ports that were chosen for it. */
import type { ServingProxy } from "../../controller/cli/serving-proxy.js";
import { createLogger, type Logger } from "../../controller/observability/logger.js";
import type { ImageCompiler } from "../../controller/proxies/nginx/plan-pieces.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";

/** Start options of a server on free ports of loopback. */
export const ON_FREE_PORTS = {
  http: { address: "127.0.0.1", port: 0 },
  https: { address: "127.0.0.1", port: 0 },
  ...{ stateSize: 32, trustedProxies: [], proxyProtocol: false, accessLog: false, drainTime: 1_000 },
  ...{ defaultCertificate: undefined, runDir: undefined, user: undefined, version: "test" },
};

interface Context {
  compiler: ImageCompiler;
  logger: Logger;
}

/**
 * Makes a server, takes the ports that were chosen for it, starts it, and asks it. Resolves with the ports of before and after, what it
 * answers on the new one, and the messages of the log.
 */
export async function startWithoutItsPorts(make: (context: Context) => Promise<ServingProxy>) {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ sink: { write: (line) => lines.push(JSON.parse(line)) }, now: Date.now });
  const server = await make({ compiler: makeRoutingTable(), logger });
  cleanup(() => server.close(1_000));
  const ports = () => [server.addresses().http?.port ?? 0, server.addresses().https?.port ?? 0];
  const before = ports();
  for (const port of before) closing(await httpPeer((_request, response) => response.end("another program"), port));
  await server.listen();
  const after = ports();
  const { status } = await ask(after[0] as number, { host: "nobody.example.com" });
  return { before, after, status, messages: lines.map(({ message }) => message) };
}
