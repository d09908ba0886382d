import { rmSync } from "node:fs";
import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { actionHost, upstreamStep } from "../support/plans.js";
import { answer } from "../support/rules.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const MIB = 1024 * 1024;

describe.skipIf(noNginx)("the control endpoint of NGINX", () => {
  it("refuses a body beyond what a piece may have before it reads it, and the worker goes on", async () => {
    const action = { kind: "return", status: 200, contentType: "text/plain", body: ["ok"] } as const;
    const nginx = await RequestNginx.start([actionHost(HOST, { ...action, body: [...action.body] })]);
    const before = await nginx.client.state();
    const status = await new Promise((resolve, reject) => {
      const sent = request(
        {
          socketPath: nginx.controlSocket,
          path: "/state",
          method: "POST",
          headers: { authorization: `Bearer ${nginx.token}`, "content-length": 66 * MIB },
        },
        (response) => {
          resolve(response.statusCode);
          sent.destroy();
        },
      );
      sent.on("error", reject);
      sent.flushHeaders();
    });
    expect(status).toBe(413);
    expect(await nginx.client.state()).toMatchObject({ seq: before.seq, sum: before.sum, master: before.master });
    expect((await ask(nginx.http, { host: HOST })).body).toBe("ok");
  });

  it("takes a large change where there is no room on disk for bodies", async () => {
    const nginx = await RequestNginx.start([]);
    rmSync(nginx.temp, { recursive: true });
    const large = upstreamStep("web", []);
    large.upstream.peers.peers = Array.from({ length: 30_000 }, (_, i) => {
      return { address: `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, port: 80, weight: 1 };
    });
    await nginx.apply(large, actionHost(HOST, answer("changed")));
    expect((await ask(nginx.http, { host: HOST })).body).toBe("changed");
  });
});
