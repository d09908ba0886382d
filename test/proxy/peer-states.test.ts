import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { PeerState } from "../../core-wasm/binding/source.js";
import { cleanUpAfterEach, closing, eventually, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer, type Peer } from "../support/peers.js";
import { type Balancing, keyOf, planOf, proxyHost, upstreamStep } from "../support/plans.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function serve(balancing: Balancing = {}) {
  const peers: Peer[] = [];
  for (const name of ["a", "b"]) peers.push(closing(await httpPeer((_, response) => response.end(name))));
  const ports = peers.map(({ port }) => port);
  const step = (of = ports) => upstreamStep("web", of, {}, balancing);
  const started = await startProxy([step(), proxyHost(HOST, "web")]);
  const { proxy, http } = started;
  return {
    ...started,
    peers,
    ports,
    step,
    set(index: number, state: PeerState) {
      proxy.setPeerStates([{ upstream: keyOf("web"), address: "127.0.0.1", port: ports[index], state }]);
    },
    /** Who answers six requests, or with what status. */
    async met(): Promise<string[]> {
      const found = new Set<string>();
      for (let i = 0; i < 6; i++) {
        const { status, body } = await ask(http);
        found.add(status === 200 ? body : String(status));
      }
      return [...found].sort();
    },
  };
}

describe("a peer that checks have down", () => {
  it("gets no request, and takes part again when it is up", async () => {
    const { set, met } = await serve();
    set(0, "down");
    expect(await met()).toEqual(["b"]);
    set(0, "up");
    expect(await met()).toEqual(["a", "b"]);
  });

  it("stays down when its upstream is set again, also if it was away meanwhile", async () => {
    const { proxy, ports, set, met, step } = await serve();
    set(0, "down");
    await proxy.apply(planOf(step()));
    expect(await met()).toEqual(["b"]);
    await proxy.apply(planOf(step([ports[1]])));
    await proxy.apply(planOf(step()));
    expect(await met()).toEqual(["b"]);
  });

  it("is usable again when its upstream was removed and comes anew", async () => {
    const { proxy, set, met, step } = await serve();
    set(0, "down");
    set(1, "down");
    await proxy.apply(planOf({ step: "remove-upstream", key: keyOf("web") }));
    await proxy.apply(planOf(step()));
    expect(await met()).toEqual(["a", "b"]);
  });

  it("may be known as such before it is there", async () => {
    const { proxy, ports, set, met, step } = await serve();
    await proxy.apply(planOf(step([ports[1]])));
    set(0, "down");
    expect(await met()).toEqual(["b"]);
    await proxy.apply(planOf(step()));
    expect(await met()).toEqual(["b"]);
  });

  it("loses its idle connections, while the other one keeps them", async () => {
    const { proxy, peers, set, met } = await serve();
    await met();
    set(0, "down");
    await eventually(() => peers[0].open() === 0 && proxy.counts().drainingPools === 0);
    expect(peers[1].open()).toBe(1);
    set(0, "up");
    expect(await met()).toEqual(["a", "b"]);
    expect(peers[1].accepted()).toBe(1);
  });

  it("ends what is under way on it in peace", async () => {
    let response: ServerResponse | undefined;
    const peer = closing(
      await httpPeer((_, own) => {
        response = own;
        own.write("begun ");
      }),
    );
    const { http, proxy } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const answer = ask(http);
    await eventually(() => response !== undefined);
    proxy.setPeerStates([{ upstream: keyOf("web"), address: "127.0.0.1", port: peer.port, state: "down" }]);
    response?.end("and finished");
    expect((await answer).body).toBe("begun and finished");
    await eventually(() => peer.open() === 0);
  });
});

describe("where checks have every peer down", () => {
  it("requests are answered 503", async () => {
    const { set, met } = await serve();
    set(0, "down");
    set(1, "down");
    expect(await met()).toEqual(["503"]);
  });

  it("all are used with panic", async () => {
    const { set, met } = await serve({ limits: { panic: true } });
    set(0, "down");
    set(1, "down");
    expect(await met()).toEqual(["a", "b"]);
  });
});

describe("a peer that must be checked first", () => {
  it("gets no request before its first passed check", async () => {
    const { set, met } = await serve({ limits: { mandatory: true } });
    expect(await met()).toEqual(["503"]);
    set(1, "up");
    expect(await met()).toEqual(["b"]);
    set(1, "unchecked");
    expect(await met()).toEqual(["503"]);
  });
});

describe("a peer that drains", () => {
  it("gets no new client while another one is left", async () => {
    const { set, met } = await serve();
    set(0, "draining");
    expect(await met()).toEqual(["b"]);
    set(1, "down");
    expect(await met()).toEqual(["a"]);
  });
});

describe("states", () => {
  it("of upstreams and peers that nobody knows are no harm", async () => {
    const { proxy, met } = await serve();
    proxy.setPeerStates([
      { upstream: "nobody", address: "127.0.0.1", port: 1, state: "down" },
      { upstream: keyOf("web"), address: "127.0.0.1", port: 1, state: "down" },
      { upstream: keyOf("web"), address: "no address", port: 1, state: "down" },
    ]);
    expect(await met()).toEqual(["a", "b"]);
  });
});
