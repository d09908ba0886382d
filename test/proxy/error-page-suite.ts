import type { RequestListener } from "node:http";
import { expect, it } from "vitest";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import type { ErrorPage } from "../../core-wasm/binding/source.js";
import { closing } from "../support/harness.js";
import { ask, keepAliveAgent } from "../support/http-client.js";
import { closedPort, httpPeer } from "../support/peers.js";
import { actionHost, keyOf, upstreamStep } from "../support/plans.js";

const HOST = "shop.example.com";

/** Answers the status that the path asks for. */
const statusPeer: RequestListener = (request, response) => {
  const status = Number(request.url?.slice(1));
  response.writeHead(status, { "X-Peer": "yes" }).end(`peer ${status}`);
};

const sorry = {
  codes: [404, 502],
  kind: "return",
  contentType: "text/html",
  body: ["<p>sorry, ", { kind: "variable", name: "request_uri" }, "</p>"],
  headers: [{ op: "add-response", name: "X-Page", value: [{ kind: "variable", name: "host" }], always: true }],
} satisfies ErrorPage;

/** Tests of error pages on a proxy that `start` starts; it answers the port of the plain listener. */
export function testErrorPages(start: (steps: PlanStep[]) => Promise<{ http: number }>): void {
  async function startPages(errorPages: ErrorPage[], ports?: number[]) {
    const peer = closing(await httpPeer(statusPeer));
    const host = actionHost(HOST, { kind: "proxy", upstream: keyOf("web"), errorPages });
    const step = upstreamStep("web", ports ?? [peer.port], {}, { limits: { maxFails: 0 } });
    return { peer, http: (await start([step, host])).http };
  }

  it("take the place of the peer's answer and keep its status where they name none", async () => {
    const { http } = await startPages([sorry]);
    const answer = await ask(http, { path: "/404" });
    expect(answer).toMatchObject({ status: 404, body: "<p>sorry, /404</p>" });
    expect(answer.headers["content-type"]).toBe("text/html");
    expect(answer.headers["x-page"]).toBe(HOST);
    expect(answer.headers["x-peer"]).toBeUndefined();
  });

  it("answer with the status that they name", async () => {
    const { http } = await startPages([{ ...sorry, status: 200 }]);
    expect(await ask(http, { path: "/404" })).toMatchObject({ status: 200, body: "<p>sorry, /404</p>" });
  });

  it("redirect, with the values of the request", async () => {
    const location = ["https://sorry.example.com/?from=", { kind: "variable", name: "host" } as const];
    const { http } = await startPages([{ codes: [500], kind: "redirect", status: 302, location }]);
    const answer = await ask(http, { path: "/500" });
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toBe(`https://sorry.example.com/?from=${HOST}`);
  });

  it("leave every other status alone", async () => {
    const { http } = await startPages([sorry]);
    expect(await ask(http, { path: "/500" })).toMatchObject({ status: 500, body: "peer 500" });
  });

  it("the first that lists a status counts", async () => {
    const { http } = await startPages([sorry, { ...sorry, status: 200, codes: [404, 500] }]);
    expect((await ask(http, { path: "/404" })).status).toBe(404);
    expect((await ask(http, { path: "/500" })).status).toBe(200);
  });

  it("stand for what the proxy itself answers when a peer can't be reached", async () => {
    const { http } = await startPages([sorry], [await closedPort()]);
    expect(await ask(http, { path: "/x" })).toMatchObject({ status: 502, body: "<p>sorry, /x</p>" });
  });

  it("stand for the 503 of an upstream without peers", async () => {
    const { http } = await startPages([{ ...sorry, codes: [503] }], []);
    expect(await ask(http, { path: "/x" })).toMatchObject({ status: 503, body: "<p>sorry, /x</p>" });
  });

  it("have no body in an answer to HEAD, and tell its length", async () => {
    const { http } = await startPages([{ ...sorry, body: ["gone"] }]);
    const answer = await ask(http, { path: "/404", method: "HEAD" });
    expect(answer).toMatchObject({ status: 404, body: "" });
    expect(answer.headers["content-length"]).toBe("4");
  });

  it("keep the connections of client and peer for the next request", async () => {
    const { http, peer } = await startPages([sorry]);
    const agent = keepAliveAgent();
    let connections = 0;
    peer.server.on("connection", () => connections++);
    for (let i = 0; i < 5; i++) expect((await ask(http, { path: "/404", agent })).status).toBe(404);
    expect(connections).toBe(1);
    agent.destroy();
  });

  it("let no failure of a peer be forgotten that they hide", async () => {
    const bad = closing(await httpPeer((_, response) => response.writeHead(502).end()));
    const good = closing(await httpPeer((_, response) => response.writeHead(201).end()));
    const errorPages: ErrorPage[] = [{ ...sorry, status: 200, codes: [502] }];
    const host = actionHost(HOST, { kind: "proxy", upstream: keyOf("web"), errorPages });
    const limits = { limits: { maxFails: 1, failTimeout: 60_000 } };
    const tries = { nextUpstream: ["http_502" as const], nextUpstreamTries: 1 };
    const { http } = await start([upstreamStep("web", [bad.port, good.port], tries, limits), host]);
    const seen: number[] = [];
    for (let i = 0; i < 6; i++) seen.push((await ask(http)).status);
    expect(seen.filter((status) => status === 200)).toHaveLength(1);
    expect(seen.filter((status) => status === 201)).toHaveLength(5);
  });

  it("leave nothing of a longer answer behind", async () => {
    const long: RequestListener = (_, response) => {
      response.writeHead(500, { "Content-Length": "300000", ETag: "x", "Set-Cookie": ["a=b", "c=d"] });
      response.end("y".repeat(300_000));
    };
    const peer = closing(await httpPeer(long));
    const pages: ErrorPage[] = [{ ...sorry, codes: [500] }];
    const host = actionHost(HOST, { kind: "proxy", upstream: keyOf("web"), errorPages: pages });
    const { http } = await start([upstreamStep("web", [peer.port]), host]);
    const answer = await ask(http, { path: "/x" });
    expect(answer).toMatchObject({ status: 500, body: "<p>sorry, /x</p>" });
    expect([answer.headers.etag, answer.headers["set-cookie"]]).toEqual([undefined, undefined]);
  });
}
