import { describe, expect, it } from "vitest";
import { CoreError } from "../../core-wasm/binding/errors.js";
import { makeCertificate } from "../support/certificates.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask, keepAliveAgent } from "../support/http-client.js";
import { closedPort, echo, httpPeer } from "../support/peers.js";
import { actionHost, certificateStep, fullPlan, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { servedCertificate } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

function named(name: string) {
  return httpPeer((_, response) => response.end(name));
}

function answering(host: string, body: string) {
  return actionHost(host, { kind: "return", status: 200, contentType: "text/plain", body: [body] });
}

describe("plans", () => {
  it("act on the very next request of an open connection", async () => {
    const { http, proxy } = await startProxy([answering(HOST, "old")]);
    const agent = keepAliveAgent();
    expect((await ask(http, { agent })).body).toBe("old");
    await proxy.apply(planOf(answering(HOST, "new")));
    expect((await ask(http, { agent })).body).toBe("new");
    expect(proxy.counts().connections).toBe(1);
    agent.destroy();
  });

  it("give their generation, and the same plan twice changes nothing", async () => {
    const { http, proxy } = await startProxy([]);
    const plan = planOf(answering(HOST, "x"));
    expect(await proxy.apply(plan)).toEqual({ generation: plan.generation, failures: [] });
    expect(await proxy.apply(plan)).toEqual({ generation: plan.generation, failures: [] });
    expect(proxy.state()).toEqual({ generation: plan.generation, serving: true });
    expect((await ask(http)).body).toBe("x");
  });

  it("that are full remove what they do not name", async () => {
    const peer = closing(await named("peer"));
    const { http, https, proxy } = await startProxy([
      upstreamStep("web", [peer.port]),
      upstreamStep("old", [peer.port]),
      proxyHost(HOST, "web"),
      proxyHost("old.example.com", "old"),
      certificateStep("old.example.com", makeCertificate("old", "old.example.com")),
    ]);
    expect((await ask(http, { host: "old.example.com" })).status).toBe(200);
    await proxy.apply(fullPlan(upstreamStep("web", [peer.port]), proxyHost(HOST, "web")));
    expect((await ask(http, { host: "old.example.com" })).status).toBe(404);
    expect((await ask(http)).body).toBe("peer");
    expect((await servedCertificate(https, "old.example.com")).subject.CN).toBe("default certificate");
  });

  it("that are not full leave the rest alone", async () => {
    const { http, proxy } = await startProxy([answering("a.example.com", "a")]);
    await proxy.apply(planOf(answering("b.example.com", "b")));
    expect((await ask(http, { host: "a.example.com" })).body).toBe("a");
  });

  it("go on after a step that is refused, and keep the last good state of its piece", async () => {
    const table = makeRoutingTable();
    const setHost = table.setHost.bind(table);
    table.setHost = (rules) => {
      if (rules.routes[0].label === "bad") throw new CoreError("CORE_LIMIT", "too much");
      setHost(rules);
    };
    const { http, proxy } = await startProxy([answering(HOST, "good")], { table });
    const bad = answering(HOST, "bad");
    if (bad.step === "set-host") bad.rules.routes[0].label = "bad";
    const plan = fullPlan(bad, answering("b.example.com", "b"));
    expect((await proxy.apply(plan)).failures).toEqual([
      { kind: "host", piece: HOST, code: "CORE_LIMIT", message: "too much" },
    ]);
    expect((await ask(http)).body).toBe("good");
    expect((await ask(http, { host: "b.example.com" })).body).toBe("b");
  });

  it("say that a gRPC upstream is not served", async () => {
    const { proxy } = await startProxy([]);
    const { failures } = await proxy.apply(planOf(upstreamStep("rpc", [1], { protocol: "grpc" })));
    expect(failures).toMatchObject([{ kind: "upstream", piece: keyOf("rpc"), code: "PROXY_UNSUPPORTED" }]);
  });

  it("are applied in the order of the calls", async () => {
    const { http, proxy } = await startProxy([]);
    const applied = Array.from({ length: 20 }, (_, i) => proxy.apply(planOf(answering(HOST, String(i)))));
    await Promise.all(applied);
    expect((await ask(http)).body).toBe("19");
  });

  it("keep the connections to peers that stay and close those to peers that leave", async () => {
    const stays = closing(await named("stays"));
    const leaves = closing(await named("leaves"));
    const { http, proxy } = await startProxy([upstreamStep("web", [stays.port, leaves.port]), proxyHost(HOST, "web")]);
    for (let i = 0; i < 4; i++) await ask(http);
    await proxy.apply(planOf(upstreamStep("web", [stays.port])));
    await eventually(() => leaves.open() === 0 && proxy.counts().drainingPools === 0);
    expect((await ask(http)).body).toBe("stays");
    expect(stays.accepted()).toBe(1);
    expect(proxy.counts().openPools).toBe(1);
  });

  it("leave nothing behind for a peer that nobody asks any more: the pool goes with its last connection", async () => {
    const peer = closing(await named("peer"));
    const { http, proxy } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    expect((await ask(http)).body).toBe("peer");
    expect(proxy.counts().openPools).toBe(1);
    peer.server.closeIdleConnections();
    await eventually(() => proxy.counts().openPools === 0 && proxy.counts().drainingPools === 0);
    expect((await ask(http)).body).toBe("peer");
    expect(peer.accepted()).toBe(2);
  });

  it("leave nothing behind for a peer that can't be reached", async () => {
    const { http, proxy } = await startProxy([upstreamStep("web", [await closedPort()]), proxyHost(HOST, "web")]);
    expect((await ask(http)).status).toBe(502);
    await eventually(() => proxy.counts().openPools === 0 && proxy.counts().drainingPools === 0);
  });

  it("let a request end on a peer that has left", async () => {
    let finish: (() => void) | undefined;
    const peer = closing(
      await httpPeer((_, response) => {
        response.write("begun ");
        finish = () => response.end("and finished");
      }),
    );
    const other = closing(await named("other"));
    const { http, proxy } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const answer = ask(http);
    await eventually(() => finish !== undefined);
    await proxy.apply(planOf(upstreamStep("web", [other.port])));
    expect((await ask(http)).body).toBe("other");
    finish?.();
    expect((await answer).body).toBe("begun and finished");
    await eventually(() => proxy.counts().drainingPools === 0);
  });

  it("change what a connection needs without a request lost", async () => {
    const peer = closing(await named("peer"));
    const { http, proxy } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    expect((await ask(http)).body).toBe("peer");
    await proxy.apply(planOf(upstreamStep("web", [peer.port], { connectTimeout: 1234 })));
    expect((await ask(http)).body).toBe("peer");
    expect(peer.accepted()).toBe(2);
  });

  it("may come 2,000 times under load without one failed request", async () => {
    const peers = [closing(await httpPeer(echo)), closing(await httpPeer(echo)), closing(await httpPeer(echo))];
    const ports = peers.map((peer) => peer.port);
    const certificates = [makeCertificate("a", HOST), makeCertificate("b", HOST)];
    const { http, https, proxy } = await startProxy([upstreamStep("web", ports), proxyHost(HOST, "web")]);
    let done = false;
    let requests = 0;
    const failed: unknown[] = [];
    const client = async (options: Parameters<typeof ask>[1], port: number): Promise<void> => {
      while (!done) {
        const answer = await ask(port, { method: "POST", body: "hello", ...options }).catch((error: unknown) => error);
        requests++;
        if (!(typeof answer === "object" && answer !== null && "status" in answer && answer.status === 200))
          failed.push(answer);
      }
    };
    const agents = Array.from({ length: 5 }, () => keepAliveAgent());
    const clients = agents.map((agent) => client({ agent }, http));
    // A handshake for each request: renewals happen under it.
    clients.push(client({ tls: true }, https), client({ tls: true }, https));
    for (let i = 0; i < 2000; i++) {
      const own = [`v${i % 2}`, `v${(i + 1) % 2}`];
      const { failures } = await proxy.apply(
        planOf(
          certificateStep(HOST, certificates[i % 2]),
          // Another name each time: the route moves to a new upstream before the old one goes.
          upstreamStep(own[0], [ports[i % 3], ports[(i + 1) % 3]]),
          proxyHost(HOST, own[0]),
          { step: "remove-upstream", key: keyOf(own[1]) },
        ),
      );
      expect(failures).toEqual([]);
      if (i % 4 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    done = true;
    await Promise.all(clients);
    for (const agent of agents) agent.destroy();
    expect(failed).toEqual([]);
    expect(requests).toBeGreaterThan(500);
    await eventually(() => proxy.counts().exchanges === 0 && proxy.counts().drainingPools === 0);
  }, 60_000);
});
