/** `npm run bench -- <table>... [--json FILE]`: measures tables and prints them. */
import { parseArgs } from "node:util";
import { admissionTable } from "./admission/table.js";
import { controlPlaneTable } from "./control-plane/table.js";
import { healthTable } from "./health/table.js";
import { hostsTable } from "./hosts/table.js";
import { nativeTable } from "./native/table.js";
import { nginxTable } from "./nginx/table.js";
import { openNjetTable } from "./opennjet/table.js";
import { proxyTable } from "./proxy/table.js";
import { regexTable } from "./regex/table.js";
import { type Row, renderTable, writeJson } from "./report.js";
import { ringTable } from "./ring/table.js";
import { routeTable } from "./route/table.js";

const TABLES: Record<string, { title: string; run: () => Row[] | Promise<Row[]> }> = {
  route: { title: "route: finding the route of a request (ratio: times the core's time)", run: routeTable },
  regex: { title: "regex: the core's engine against RegExp (ratio: times RegExp's time)", run: regexTable },
  health: { title: "health: results of checks, and probing (ratio: times the core's time)", run: healthTable },
  ring: { title: "ring: consistent hashing with 1,000 peers (ratio: times the core's time)", run: ringTable },
  admission: {
    title: "admission: the validating webhook (ratio: times the time at 100 objects)",
    run: admissionTable,
  },
  proxy: { title: "proxy: processor time of the embedded proxy per request, one process", run: proxyTable },
  native: { title: "native: the core inside a worker of NGINX (ratio: times the worker's time)", run: nativeTable },
  nginx: {
    title: "nginx: our NGINX against a static one and Envoy (ratio: times the figure of the row that has 1.00x)",
    run: nginxTable,
  },
  opennjet: {
    title: "opennjet: OpenNJet that we drive against a static one (ratio: times the figure of the row that has 1.00x)",
    run: openNjetTable,
  },
  hosts: {
    title: "hosts: a decision in programs that embed the core (ratio: times the core's time in that program)",
    run: hostsTable,
  },
  "control-plane": {
    title: "control-plane: changes of a cluster of 1,000 and 5,000 Ingresses (ratio: times the p50 at 1,000)",
    run: controlPlaneTable,
  },
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: "string" } } });
  const unknown = positionals.filter((name) => !(name in TABLES));
  if (!positionals.length || unknown.length) {
    console.error(`usage: npm run bench -- <${Object.keys(TABLES).join(" | ")}>... [--json FILE]`);
    process.exitCode = 2;
    return;
  }
  const all: Row[] = [];
  for (const name of positionals) {
    const { title, run } = TABLES[name];
    const rows = await run();
    console.log(renderTable(title, rows));
    all.push(...rows);
  }
  if (values.json) writeJson(values.json, all);
}

await main();
