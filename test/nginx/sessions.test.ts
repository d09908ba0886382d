import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort, httpPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const COOKIE = { name: "srv", path: "/", httpOnly: true, secure: true, sameSite: "Lax" as const };

async function named(name: string): Promise<number> {
  return closing(await httpPeer((_request, response) => response.setHeader("Set-Cookie", "own=1").end(name))).port;
}

describe.skipIf(noNginx)("a session cookie on NGINX", () => {
  it("is set for a new client, beside the peer's own, and leads it to the same peer from then on", async () => {
    const ports = [await named("a"), await named("b"), await named("c")];
    const { http } = await RequestNginx.start([
      upstreamStep("web", ports, {}, { cookie: COOKIE }),
      proxyHost(HOST, "web"),
    ]);
    const first = await ask(http);
    const [own, session] = first.headers["set-cookie"] ?? [];
    expect(own).toBe("own=1");
    expect(session).toMatch(/^srv=[0-9a-f]{8}; httponly; secure; samesite=lax; path=\/$/);
    for (let i = 0; i < 6; i++) {
      const next = await ask(http, { headers: { Cookie: session.split(";")[0] } });
      expect(next.body).toBe(first.body);
      expect(next.headers["set-cookie"]).toEqual(["own=1"]);
    }
  });

  it("of a peer that fails moves the client to another one, with a new cookie", async () => {
    const cookie = { ...COOKIE, secure: false };
    const port = await named("a");
    const gone = await closedPort();
    const { http } = await RequestNginx.start([
      upstreamStep("web", [port, gone], {}, { cookie, limits: { maxFails: 0 } }),
      proxyHost(HOST, "web"),
    ]);
    const settled = (await ask(http)).headers["set-cookie"]?.[1].split(";")[0];
    for (let i = 0; i < 4; i++) {
      const answer = await ask(http);
      expect([answer.status, answer.headers["set-cookie"]?.[1].split(";")[0]]).toEqual([200, settled]);
    }
  });

  it("with a time is renewed with each answer", async () => {
    const cookie = { name: "srv", expires: 3_600_000, httpOnly: false, secure: false };
    const ports = [await named("a"), await named("b")];
    const { http } = await RequestNginx.start([upstreamStep("web", ports, {}, { cookie }), proxyHost(HOST, "web")]);
    const set = (await ask(http)).headers["set-cookie"]?.[1] ?? "";
    expect(set).toMatch(/^srv=[0-9a-f]{8}; expires=\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT; max-age=3600$/);
    const again = await ask(http, { headers: { Cookie: set.split(";")[0] } });
    expect(again.headers["set-cookie"]?.[1].split(";")[0]).toBe(set.split(";")[0]);
  });
});
