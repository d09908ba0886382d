import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { actionHost } from "../support/plans.js";
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
});
