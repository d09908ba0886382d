import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { echo, httpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function serve(transport: Parameters<typeof upstreamStep>[2]) {
  let asked = 0;
  const peer = closing(
    await httpPeer((request, response) => {
      asked++;
      echo(request, response);
    }),
  );
  const { http } = await RequestNginx.start([upstreamStep("web", [peer.port], transport), proxyHost(HOST, "web")]);
  return { http, asked: () => asked };
}

describe.skipIf(noNginx)("bodies through NGINX", () => {
  const CHUNKED = { "Transfer-Encoding": "chunked" };

  it("are refused with 413 where they state more than the upstream takes, and the connection ends", async () => {
    const { http, asked } = await serve({ clientMaxBodySize: 2000 });
    expect((await ask(http, { method: "POST", body: "a".repeat(2000) })).status).toBe(200);
    const client = await RawClient.plain(http);
    client.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 2001\r\n\r\n`);
    const received = await client.until((text) => text.includes("</html>"));
    expect(statuses(received)).toEqual([413]);
    expect(received).toMatch(/connection: close/i);
    expect(asked()).toBe(1);
    client.destroy();
  });

  it("that state no length are held to the very byte", async () => {
    const { http, asked } = await serve({ clientMaxBodySize: 2000 });
    const fits = await ask(http, { method: "POST", body: "a".repeat(2000), headers: CHUNKED });
    expect([fits.status, JSON.parse(fits.body).body.length]).toEqual([200, 2000]);
    expect((await ask(http, { method: "POST", body: "a".repeat(2001), headers: CHUNKED })).status).toBe(413);
    const large = await ask(http, { method: "POST", body: "a".repeat(300_000), headers: CHUNKED }).catch(() => ({
      status: 413,
    }));
    expect(large.status).toBe(413);
    expect(asked()).toBe(1);
  });

  it("of any size pass where there is no limit, with a length or without", async () => {
    const { http } = await serve({ clientMaxBodySize: 0 });
    const body = "0123456789abcdef".repeat(200_000);
    for (const headers of [{}, CHUNKED]) {
      const answer = await ask(http, { method: "PUT", body, headers });
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body).body === body).toBe(true);
    }
  });

  it("keep their length over a rewrite and changed headers", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await RequestNginx.start([
      upstreamStep("web", [peer.port], { clientMaxBodySize: 100, buffering: false }),
      proxyHost(HOST, "web", [{ op: "set-request", name: "X-A", value: ["1"] }]),
    ]);
    const answer = await ask(http, { method: "POST", body: "hello", headers: CHUNKED });
    expect(JSON.parse(answer.body)).toMatchObject({ body: "hello", headers: { "x-a": "1" } });
  });
});
