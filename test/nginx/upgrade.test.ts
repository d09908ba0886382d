import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { closedPort, echo, httpPeer, httpsPeer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const UPGRADE = `GET /chat HTTP/1.1\r\nHost: ${HOST}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n`;

/** A peer that switches to whatever is asked for, greets, and sends back what comes. */
async function echoingPeer(open: typeof httpPeer | typeof httpsPeer = httpPeer) {
  const peer = closing(await open(echo));
  peer.server.on("upgrade", (request, socket) => {
    socket.on("error", () => undefined);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${request.headers.upgrade}\r\nConnection: Upgrade\r\n\r\nhello`,
    );
    socket.on("data", (chunk: Buffer) => socket.write(chunk));
    socket.on("end", () => socket.end());
  });
  return peer;
}

describe.skipIf(noNginx)("upgrades on NGINX", () => {
  it.each(["plain", "TLS"] as const)(
    "tunnel a WebSocket to a %s peer, over changes of routes and peers",
    async (towards) => {
      const peer = await echoingPeer(towards === "plain" ? httpPeer : httpsPeer);
      const nginx = await RequestNginx.start([
        upstreamStep("web", [await closedPort(), peer.port], { tls: towards === "TLS" }, { limits: { maxFails: 0 } }),
        proxyHost(HOST, "web"),
      ]);
      const client = await RawClient.plain(nginx.http);
      client.write(UPGRADE);
      await client.until((text) => text.endsWith("\r\n\r\nhello"));
      expect(client.received).toMatch(/^HTTP\/1\.1 101 .*\r\nupgrade: websocket\r\n/is);
      await nginx.apply(upstreamStep("web", []), { step: "remove-host", pattern: { kind: "exact", host: HOST } });
      const data = "frame".repeat(50_000);
      client.write(data);
      await client.until((text) => text.endsWith(data), 10_000);
      client.socket.end();
      await client.end();
      await eventually(() => nginx.accessLog().some((line) => line.status === 101));
    },
  );

  it("are not made for h2c or with a body; the request goes on without it", async () => {
    const peer = await echoingPeer();
    const { http } = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const requests = [
      UPGRADE.replace("websocket", "h2c").replace(
        "Upgrade\r\n",
        "Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
      ),
      `${UPGRADE.replace("GET", "POST").slice(0, -2)}Content-Length: 3\r\n\r\nabc`,
    ];
    for (const request of requests) {
      const client = await RawClient.plain(http);
      client.write(request);
      const received = await client.until((text) => text.includes('"body"'));
      expect(statuses(received)).toEqual([200]);
      expect(received).not.toMatch(/"upgrade"|http2-settings/i);
      client.destroy();
    }
  });

  it("give the client the answer of a peer that declines", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(http);
    client.write(UPGRADE);
    expect(statuses(await client.until((text) => text.includes('"body"')))).toEqual([200]);
    client.destroy();
  });
});
