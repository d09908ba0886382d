/** Table `hosts`: what a decision costs in the programs that embed the core, against the router of each in the same run. */
import type { Row } from "../report.js";
import { envoyRows } from "./envoy-side.js";
import { goRows } from "./go-side.js";
import { nodeRows } from "./node-side.js";

export async function hostsTable(): Promise<Row[]> {
  return [...(await nodeRows()), ...(await goRows()), ...(await envoyRows())];
}
