import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { closedPort, echo, httpPeer, tcpPeer } from "../support/peers.js";
import { keyOf, proxyHost, upstreamStep } from "../support/plans.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function serve(
  ports: number[],
  transport: Parameters<typeof upstreamStep>[2] = {},
  balancing: Parameters<typeof upstreamStep>[3] = {},
) {
  const steps = [upstreamStep("web", ports, transport, balancing), proxyHost(HOST, "web")];
  return await RequestNginx.start(steps);
}

/** A peer that answers with a status, and counts. */
async function statusPeer(status: number) {
  let asked = 0;
  const peer = closing(
    await httpPeer((request, response) => {
      asked++;
      request.resume();
      response.statusCode = status;
      response.end(`status ${status} of the peer`);
    }),
  );
  return { port: peer.port, asked: () => asked };
}

/** Takes requests and closes without an answer; counts requests. */
async function silentPeer(act: "close" | "hang" = "close") {
  let asked = 0;
  const peer = closing(
    await tcpPeer((socket) =>
      socket.on("data", (chunk: Buffer) => {
        if (!/^[A-Z]+ \//.test(chunk.toString("latin1"))) return;
        asked++;
        if (act === "close") socket.destroy();
      }),
    ),
  );
  return { port: peer.port, asked: () => asked };
}

describe.skipIf(noNginx)("where a peer fails, NGINX", () => {
  it("answers 502 where the only one refuses connections, with a page of the proxy", async () => {
    const { http } = await serve([await closedPort()]);
    const { status, body } = await ask(http);
    expect([status, body]).toEqual([
      502,
      "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1></body></html>\n",
    ]);
  });

  it("tries another one where one refuses connections, with the body, whatever the method", async () => {
    const peer = closing(await httpPeer(echo));
    const { http } = await serve([await closedPort(), peer.port], {}, { limits: { maxFails: 0 } });
    for (let i = 0; i < 4; i++) {
      const { status, body } = await ask(http, { method: "POST", body: "hello" });
      expect([status, JSON.parse(body).body]).toEqual([200, "hello"]);
    }
  });

  it("tries another one where one breaks off, and does not repeat a POST that it may have acted on", async () => {
    const silent = await silentPeer();
    const peer = closing(await httpPeer(echo));
    const { http } = await serve([silent.port, peer.port], {}, { limits: { maxFails: 0 } });
    const gets = await Promise.all([1, 2, 3, 4].map(() => ask(http)));
    expect(gets.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const before = silent.asked();
    const posts = await Promise.all([1, 2, 3, 4].map(() => ask(http, { method: "POST", body: "x" })));
    const failed = posts.filter(({ status }) => status === 502).length;
    expect(failed).toBeGreaterThan(0);
    expect(silent.asked() - before).toBe(failed);
  });

  it("repeats a POST where the upstream allows it", async () => {
    const silent = await silentPeer();
    const peer = closing(await httpPeer(echo));
    const nextUpstream = ["error", "timeout", "non_idempotent"] as const;
    const { http } = await serve([silent.port, peer.port], { nextUpstream: [...nextUpstream] });
    for (let i = 0; i < 3; i++) expect((await ask(http, { method: "POST", body: "x" })).status).toBe(200);
  });

  it("answers 504 where a peer does not answer in time, and tries another one only where time-outs are listed", async () => {
    const hanging = await silentPeer("hang");
    const peer = closing(await httpPeer(echo));
    const alone = await serve([hanging.port], { readTimeout: 100 });
    expect((await ask(alone.http)).status).toBe(504);
    await alone.apply(
      upstreamStep("web", [hanging.port, peer.port], { readTimeout: 100 }, { limits: { maxFails: 0 } }),
    );
    for (let i = 0; i < 2; i++) expect((await ask(alone.http)).status).toBe(200);
    const errorsOnly = { readTimeout: 100, nextUpstream: ["error" as const] };
    await alone.apply(upstreamStep("web", [hanging.port, peer.port], errorsOnly, { limits: { maxFails: 0 } }));
    const statuses = [(await ask(alone.http)).status, (await ask(alone.http)).status];
    expect(statuses.sort()).toEqual([200, 504]);
  });

  it("tries another one for a status that is listed, and shows the last one's own answer where none is left", async () => {
    const [first, second] = [await statusPeer(503), await statusPeer(503)];
    const { http } = await serve(
      [first.port, second.port],
      { nextUpstream: ["http_503"] },
      { limits: { maxFails: 0 } },
    );
    const { status, body } = await ask(http);
    expect([status, body, first.asked(), second.asked()]).toEqual([503, "status 503 of the peer", 1, 1]);
  });

  it("shows a status that is not listed, and asks nobody else", async () => {
    const [first, second] = [await statusPeer(503), await statusPeer(503)];
    const { http } = await serve([first.port, second.port], { nextUpstream: ["error", "http_502"] });
    expect((await ask(http)).body).toBe("status 503 of the peer");
    expect(first.asked() + second.asked()).toBe(1);
  });

  it("keeps to the number of tries, and never tries where the list is empty", async () => {
    const peers = await Promise.all([1, 2, 3].map(() => silentPeer()));
    const ports = peers.map(({ port }) => port);
    const { http, apply } = await started(ports, { nextUpstreamTries: 1 });
    expect((await ask(http)).status).toBe(502);
    expect(peers.reduce((sum, peer) => sum + peer.asked(), 0)).toBe(1);
    await apply(upstreamStep("web", ports, { nextUpstream: [] }));
    expect((await ask(http)).status).toBe(502);
    expect(peers.reduce((sum, peer) => sum + peer.asked(), 0)).toBe(2);
  });

  it("asks once more on another connection where a kept one breaks, and holds nothing against the peer", async () => {
    let requests = 0;
    const peer = closing(
      await tcpPeer((socket) => {
        let onThis = 0;
        socket.on("data", () => {
          requests++;
          // The second request of a connection meets its end.
          if (++onThis > 1) socket.destroy();
          else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        });
      }),
    );
    const { http } = await serve([peer.port]);
    for (let i = 0; i < 4; i++) expect((await ask(http)).status).toBe(200);
    expect(requests).toBeGreaterThan(4);
  });

  it("gives the place at a peer back exactly once, however a request ends", async () => {
    const peer = closing(
      await httpPeer((request, response) => {
        if (request.url === "/never") return;
        if (request.url === "/break") response.socket?.destroy();
        else response.end("ok");
      }),
    );
    const balancing = { limits: { maxConns: 1 } };
    const { http, apply } = await started([peer.port], { readTimeout: 200 }, balancing);
    for (const path of ["/", "/never", "/break", "/", "/break", "/"]) {
      await ask(http, { path });
      // The last one that was to be given back is: else every peer would be busy.
      expect((await ask(http)).status, path).toBe(200);
    }
    await apply(upstreamStep("web", [peer.port], {}, balancing));
    expect((await ask(http)).status).toBe(200);
  });

  it("takes peers out that checks have down, and answers 503 where all are", async () => {
    const [first, second] = [await statusPeer(200), await statusPeer(200)];
    const nginx = await serve([first.port, second.port]);
    const state = (port: number, state: "up" | "down") => ({
      upstream: keyOf("web"),
      address: "127.0.0.1",
      port,
      state,
    });
    await nginx.setPeerStates(keyOf("web"), [state(first.port, "down")]);
    for (let i = 0; i < 4; i++) expect((await ask(nginx.http)).status).toBe(200);
    expect([first.asked(), second.asked()]).toEqual([0, 4]);
    await nginx.setPeerStates(keyOf("web"), [state(first.port, "down"), state(second.port, "down")]);
    expect((await ask(nginx.http)).status).toBe(503);
    await nginx.setPeerStates(keyOf("web"), [state(first.port, "up"), state(second.port, "down")]);
    expect((await ask(nginx.http)).status).toBe(200);
    expect(first.asked()).toBe(1);
  });

  async function started(...args: Parameters<typeof serve>) {
    const nginx = await serve(...args);
    return { http: nginx.http, apply: nginx.apply.bind(nginx) };
  }
});
