import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OpenNjetDouble } from "../real/opennjet-double/index.js";
import { Replay, writeFirstCertificate } from "./replay.js";
import { readTranscript } from "./transcript.js";

/** Lines that the double can't answer, and why. */
const NOT_REPLAYED: Record<string, string> = {
  "curl -H Host: a.example.com http://127.0.0.1:18080/dlua": "the double has no Lua",
  "curl http://127.0.0.1:18080/lua": "the double has no Lua",
};

const steps = readTranscript();

describe("the double of OpenNJet, line by line of the transcript", () => {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-transcript-"));
  let double: OpenNjetDouble;
  let replay: Replay;

  beforeAll(async () => {
    writeFirstCertificate(folder);
    double = await OpenNjetDouble.start({
      configuration: {
        servers: [
          ...[19001, 19002].map((port) => ({
            listens: [`127.0.0.1:${port}`],
            names: [""],
            body: `location / { return 200 "backend-${port} host=$http_host uri=$request_uri\\n"; }`,
          })),
          {
            listens: ["127.0.0.1:18080"],
            names: ["_"],
            body: 'location / { return 200 "root host=$host map=$backend_name sc2=$sc2\\n"; } location /be { proxy_pass http://dyn_be; }',
          },
          {
            listens: ["127.0.0.1:18080"],
            names: ["a.example.com"],
            body: 'location / { return 200 "a.example.com static root\\n"; }',
          },
          {
            listens: ["127.0.0.1:18443"],
            names: ["tls.example.com"],
            tls: { certificate: `${folder}/conf/c1.pem`, key: `${folder}/conf/k1.pem` },
            body: "location / { return 200 tls; }",
          },
        ],
        upstreams: {
          dyn_be: { servers: ["127.0.0.1:19001"] },
          hc_be: { servers: ["127.0.0.1:19001", "127.0.0.1:19009"] },
        },
        maps: [
          {
            keyFrom: "$http_x_canary",
            keyTo: "$backend_name",
            values: [
              { valueFrom: "default", valueTo: "stable" },
              { valueFrom: "v2", valueTo: "canary" },
            ],
          },
        ],
        split: { key: "$request_id", variable: "$sc2", shares: { a: 100, b: 0 } },
      },
      balanced: [],
      prefix: folder,
    });
    replay = new Replay({
      port: (port) => (port === 18081 ? Number(new URL(double.origin).port) : double.port(`127.0.0.1:${port}`)),
      address: (port) => port,
      prefix: folder,
      certificates: `${folder}/conf`,
      metrics: "/metrics",
    });
  });
  afterAll(async () => {
    await double.close();
    rmSync(folder, { recursive: true });
  });

  for (const step of steps) {
    const title = step.kind === "request" ? step.title : step.text;
    const reason = NOT_REPLAYED[title];
    it(`line ${step.line}: ${title}${reason === undefined ? "" : ` (not replayed: ${reason})`}`, async ({ skip }) => {
      if (reason !== undefined) skip(reason);
      const { wanted, came } = await replay.step(step);
      expect(came).toBe(wanted);
    });
  }

  it("leaves out only lines that are there", () => {
    const titles = steps.map((step) => (step.kind === "request" ? step.title : step.text));
    expect(Object.keys(NOT_REPLAYED).filter((line) => !titles.includes(line))).toEqual([]);
  });
});
