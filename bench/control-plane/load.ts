/**
 * A process that sends 200 requests a second to hosts that do not change, at even times whatever the answers take, and
 * says at each message how many it has sent and which have failed.
 */
import { KeptConnection } from "./kept-connection.js";
import { addressPrefix, hostOf, STABLE, siteName } from "./site.js";

const PER_SECOND = 200;
const CONNECTIONS = 16;

export interface LoadReport {
  sent: number;
  failed: number;
  /** What the first failures were. */
  failures: string[];
}

process.once("message", async (port: number) => {
  const report: LoadReport = { sent: 0, failed: 0, failures: [] };
  const idle = await Promise.all(Array.from({ length: CONNECTIONS }, () => KeptConnection.open(port)));
  const fail = (what: string) => {
    report.failed++;
    if (report.failures.length < 5) report.failures.push(what);
  };
  const send = async () => {
    const index = report.sent++ % STABLE;
    const connection = idle.pop() ?? (await KeptConnection.open(port));
    try {
      const { status, body } = await connection.ask(hostOf(siteName(index)), "/shop/item");
      if (status !== 200 || !body.startsWith(addressPrefix(index))) fail(`${siteName(index)}: ${status} ${body}`);
      idle.push(connection);
    } catch (error) {
      connection.close();
      fail(`${siteName(index)}: ${String(error)}`);
    }
  };
  const begun = performance.now();
  setInterval(() => {
    const due = ((performance.now() - begun) / 1000) * PER_SECOND;
    while (report.sent < due) send().catch((error: unknown) => fail(String(error)));
  }, 2);
  process.on("message", () => process.send?.(report));
  process.send?.(report);
});
process.once("disconnect", () => process.exit());
