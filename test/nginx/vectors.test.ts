import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe } from "vitest";
import type { Vector } from "../model/model-support.js";
import { serveEmbedded } from "../proxy/vector-embedded.js";
import { StandIns } from "../proxy/vector-peers.js";
import { type Serving, stepsOf, testVectorsOverHttp } from "../proxy/vector-suite.js";
import { cleanUpAfterEach, eventually } from "../support/harness.js";
import { installation, noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

const HERE = fileURLToPath(new URL(".", import.meta.url));

const standIns = new StandIns();
afterAll(() => standIns.close());
cleanUpAfterEach();

/** A real NGINX with what the objects of a vector give. */
async function serveNginx(vector: Vector): Promise<Serving> {
  const steps = stepsOf(vector);
  await standIns.openAll(steps);
  const ports = [...standIns.ports()].map(([name, port]) => `["${name}"]=${port}`).join(",");
  const { luaPath } = await installation();
  const nginx = await RequestNginx.start(steps, {
    trustedProxies: ["127.0.0.1"],
    luaPath: `${HERE}?.lua;${luaPath}`,
    edit: (text) => text.replace("init_by_lua_block {", `init_by_lua_block {\nrequire("stand_ins").open {${ports}}`),
  });
  const before = nginx.accessLog().length;
  return {
    http: nginx.http,
    https: nginx.https,
    logged: async (count) => {
      await eventually(() => nginx.accessLog().length >= before + count);
      return nginx.accessLog().slice(before);
    },
  };
}

describe.skipIf(noNginx)("over HTTP and on NGINX, the strict vectors", () => {
  beforeAll(() => installation(), 600_000);
  testVectorsOverHttp(serveNginx, (vector) => serveEmbedded(vector, standIns));
});
