import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually, type Started, startProxy } from "../support/harness.js";
import { echo, httpPeer, type Peer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { BODIES, GET, HEADS, HIDDEN, HOST, POST } from "./refused-requests.js";

cleanUpAfterEach();

type Served = Started & { peer: Peer; targets: string[] };

async function serve(options: Parameters<typeof startProxy>[1] = {}): Promise<Served> {
  const targets: string[] = [];
  const peer = closing(
    await httpPeer((request, response) => {
      targets.push(request.url ?? "");
      echo(request, response);
    }),
  );
  const started = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")], options);
  return { ...started, peer, targets };
}

describe.each(["plain", "TLS"] as const)("refusals on the %s port", (port) => {
  const open = (served: Served) => (port === "plain" ? RawClient.plain(served.http) : RawClient.tls(served.https));

  it.each(HEADS)("refuses %s", async (_title, request, status) => {
    const served = await serve();
    const client = await open(served);
    client.write(request + HIDDEN);
    const received = await client.end();
    expect(statuses(received)).toEqual([status]);
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
    expect(served.targets).toEqual([]);
    expect(served.proxy.counts().exchanges).toBe(0);
  });

  it.each(BODIES)("refuses %s", async (_title, body) => {
    const served = await serve();
    const client = await open(served);
    client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${body}${HIDDEN}`);
    expect(statuses(await client.end())).toEqual([400]);
    await eventually(() => served.proxy.counts().exchanges === 0);
    expect(served.targets).not.toContain("/hidden");
  });
});

describe("refusals", () => {
  it("breaks a body off at the peer when a later chunk is bad", async () => {
    let broken = false;
    const peer = closing(
      await httpPeer((request) => {
        request.on("error", () => {
          broken = true;
        });
        request.resume();
      }),
    );
    const { http } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.plain(http);
    client.write(`${POST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n`);
    await eventually(() => peer.accepted() === 1);
    client.write("nonsense\r\n");
    expect(statuses(await client.end())).toEqual([400]);
    await eventually(() => broken);
  });

  it.each([
    ["a head that is too large", `${GET}X-A: ${"a".repeat(64 * 1024)}`, 431],
    ["nonsense", "nonsense\r\n\r\n", 400],
    ["CONNECT", `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
  ])("lets a client that goes on sending after %s have the answer", async (_title, request, status) => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.socket.pause();
    client.write(request);
    for (let i = 0; i < 20; i++) {
      await new Promise((resolve) => client.socket.write(Buffer.alloc(64 * 1024, "a"), resolve));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    client.socket.resume();
    expect(statuses(await client.end())).toEqual([status]);
    expect(client.error).toBeUndefined();
  });

  it("gives up on a client that never stops sending after a refusal", async () => {
    const { http, proxy } = await serve({ limits: { lingerTimeout: 100 } });
    const client = await RawClient.plain(http, { allowHalfOpen: true });
    client.write("nonsense\r\n\r\n");
    const timer = setInterval(() => client.write("more"), 10);
    await eventually(() => client.closed && proxy.counts().connections === 0);
    clearInterval(timer);
  });

  it("shows nothing from the request on its error pages", async () => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.write("GET /<script>alert(1)</script> HTTP/1.1\r\nHost: unknown.example.com\r\nConnection: close\r\n\r\n");
    const received = await client.end();
    expect(statuses(received)).toEqual([404]);
    expect(received).not.toMatch(/script|unknown/);
  });

  it("answers 408 to a client that is slow with its head", async () => {
    const { http } = await serve({ limits: { headerTimeout: 300 } });
    const client = await RawClient.plain(http);
    client.write("GET / HTTP/1.1\r\nHost: s");
    expect(statuses(await client.end())).toEqual([408]);
  });

  it("answers 408 to a client that stops in the middle of its body", async () => {
    const { http } = await serve({ limits: { bodyTimeout: 100 } });
    const client = await RawClient.plain(http);
    client.write(`${POST}Content-Length: 10\r\n\r\nabc`);
    expect(statuses(await client.end())).toEqual([408]);
  });

  it("closes a connection that stays idle", async () => {
    const { http } = await serve({ limits: { keepAliveTimeout: 50 } });
    const client = await RawClient.plain(http);
    client.write(`${GET}\r\n`);
    expect(statuses(await client.end())).toEqual([200]);
  });

  it("takes no more connections than it is told to", async () => {
    const { http } = await serve({ limits: { maxConnections: 2 } });
    const kept = [await RawClient.plain(http), await RawClient.plain(http)];
    const extra = await RawClient.plain(http);
    expect(await extra.end()).toBe("");
    for (const client of kept) {
      client.write(`${GET}\r\n`);
      expect(statuses(await client.until((text) => text.includes("\r\n\r\n")))).toEqual([200]);
      client.destroy();
    }
  });

  it("reads a pipelined request after an answered one", async () => {
    const { http, targets } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${POST}Content-Length: 3\r\n\r\nabc${HIDDEN}`);
    await client.until((text) => statuses(text).length === 2);
    expect(targets).toEqual(["/", "/hidden"]);
    client.destroy();
  });

  it("answers a whole request before nonsense on the same connection, then refuses that", async () => {
    const { http, targets } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${GET}\r\nnonsense\r\n\r\n${HIDDEN}`);
    expect(statuses(await client.end())).toEqual([200, 400]);
    expect(targets).toEqual(["/"]);
  });

  it("does not begin a request whose body turns out bad while it waits for its turn", async () => {
    const { http, targets } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${GET}\r\n${POST.replace("/ ", "/bad ")}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense\r\n`);
    expect(statuses(await client.end())).toEqual([200, 400]);
    expect(targets).toEqual(["/"]);
  });

  it("drops chunk extensions and request trailers", async () => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.write(`${POST}Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\n`);
    const received = await client.until((text) => text.includes('"body":"abc"'));
    expect(received).not.toMatch(/x=y|X-T/i);
    client.destroy();
  });

  it("serves HTTP/1.0 and closes after the answer", async () => {
    const { http } = await serve();
    const client = await RawClient.plain(http);
    client.write(`GET / HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`);
    expect(statuses(await client.end())).toEqual([200]);
  });
});
