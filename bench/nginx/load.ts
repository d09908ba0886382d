/**
 * A process that sends 500 requests a second over kept connections, at even times whatever the answers take, and says at each
 * message how many it has sent, which have failed, and how many connections were closed while no request was under way.
 */
import { KeptConnection } from "../control-plane/kept-connection.js";
import { addressPrefix, hostOf, servicesOf } from "./site.js";

const PER_SECOND = 500;
const CONNECTIONS = 32;
/** Hosts that nobody changes: the first ones. */
export const STABLE_HOSTS = 100;

export interface LoadReport {
  sent: number;
  failed: number;
  closedIdle: number;
  /** What the first failures were. */
  failures: string[];
}

async function serve(port: number): Promise<void> {
  const report: LoadReport = { sent: 0, failed: 0, closedIdle: 0, failures: [] };
  const idle = await Promise.all(Array.from({ length: CONNECTIONS }, () => KeptConnection.open(port)));
  const fail = (what: string) => {
    report.failed++;
    if (report.failures.length < 5) report.failures.push(what);
  };
  const free = async () => {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (!connection.closed) return connection;
      report.closedIdle++;
    }
    return KeptConnection.open(port);
  };
  const send = async () => {
    const index = report.sent++ % STABLE_HOSTS;
    const connection = await free();
    try {
      const { status, body } = await connection.ask(hostOf(index), "/cart/items");
      if (status !== 200 || !body.startsWith(addressPrefix(servicesOf(index)[1])))
        fail(`${status} ${body.slice(0, 40)}`);
      idle.unshift(connection);
    } catch (error) {
      connection.close();
      fail(String(error));
    }
  };
  const begun = performance.now();
  setInterval(() => {
    const due = ((performance.now() - begun) / 1000) * PER_SECOND;
    while (report.sent < due) send().catch((error: unknown) => fail(String(error)));
  }, 2);
  process.on("message", () => process.send?.(report));
  process.send?.(report);
}

if (process.send !== undefined) {
  process.once("message", serve);
  process.once("disconnect", () => process.exit());
}
