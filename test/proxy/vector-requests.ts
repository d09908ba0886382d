/** Vectors as bytes on the wire, for every proxy that serves them over HTTP. */
import { expect } from "vitest";
import { decisionJson } from "../../controller/cli/decision-json.js";
import { parseRequestSpec, type RequestSpec } from "../../controller/cli/request-line.js";
import type { RouteTable } from "../../core-wasm/binding/route-table.js";
import { tableOfObjects, type Vector } from "../model/model-support.js";
import { RawClient } from "../support/raw-client.js";
import { type PeerAnswer, peerName } from "./vector-peers.js";

/** A proxy that serves the objects of a vector, whose peers are stand-ins. It trusts 127.0.0.1 as a proxy. */
export interface VectorProxy {
  http: number;
  https: number;
  /** What it has logged of the first `count` requests; absent where its log knows nothing of upstreams and resources. */
  logged?(count: number): Promise<Record<string, unknown>[]>;
  /** With which peer round robin begins: the one that is drawn by the random number 0, or any. `drawn` where absent. */
  begin?: "drawn" | "anywhere";
}

/** The bytes of a request, nothing in it changed. What the spec says of the client comes as from a trusted proxy. */
function wireForm(spec: RequestSpec): { head: string; https: boolean } {
  const request = parseRequestSpec(spec);
  const headers = Object.entries(spec.headers ?? {}).filter(([name]) => name.toLowerCase() !== "host");
  if (spec.client !== undefined) headers.push(["X-Forwarded-For", spec.client]);
  headers.push(["Connection", "close"]);
  const lines = headers.map(([name, value]) => `${name}: ${Buffer.from(value, "utf8").toString("latin1")}\r\n`);
  const head = `${request.method} ${request.target} HTTP/1.1\r\nHost: ${request.host}\r\n${lines.join("")}\r\n`;
  return { head, https: request.scheme === "https" };
}

interface WireAnswer {
  status: number;
  location?: string;
  body: string;
}

/** The one answer of a closed connection; its length is given by Content-Length or by chunks. */
function parseAnswer(received: string): WireAnswer {
  const end = received.indexOf("\r\n\r\n");
  const head = received.slice(0, end);
  const body = received.slice(end + 4);
  const location = /^location: (.*)$/im.exec(head)?.[1];
  const text = /^transfer-encoding: chunked/im.test(head) ? body.split("\r\n")[1] : body;
  return { status: Number(head.split(" ")[1]), body: text, ...(location === undefined ? {} : { location }) };
}

type Expected = Vector["cases"][number]["expect"] & {
  action: "proxy" | "return" | "redirect";
  target?: string;
  peer?: string;
  location?: string;
  body?: string;
  resource?: string;
};

/** Sends each request of a vector and holds the answers against what the vector asks for, and against the core. */
export async function holdsOverHttp(vector: Vector, proxy: VectorProxy): Promise<void> {
  // The same table, asked directly: what is not in the vector must agree with it as well.
  const table = tableOfObjects(vector.objects);
  for (const [index, { request, expect: wanted }] of vector.cases.entries()) {
    const expected = wanted as Expected;
    const decision = decisionJson(table.decide(parseRequestSpec(request), 0));
    const { head, https } = wireForm(request);
    const client = https ? await RawClient.tls(proxy.https) : await RawClient.plain(proxy.http);
    client.write(head);
    const answer = parseAnswer(await client.end());
    const title = `${index + 1}: ${request.method ?? "GET"} ${request.url}`;

    if (expected.action === "proxy") {
      expect(answer.status, `${title} ${answer.body}`).toBe(200);
      const reached = JSON.parse(answer.body) as PeerAnswer;
      const drawn = expected.peer ?? decision.peer;
      const inTurn = proxy.begin === "anywhere" ? inTurnWith(table, request, drawn) : [drawn];
      expect(inTurn, title).toContain(reached.peer);
      expect(reached, title).toEqual({
        peer: reached.peer,
        method: request.method ?? "GET",
        target: expected.target ?? decision.target,
      });
    } else {
      expect(answer.status, title).toBe(expected.status);
      if (expected.location !== undefined) expect(answer.location, title).toBe(expected.location);
      if (expected.body !== undefined) expect(answer.body, title).toBe(expected.body);
    }
    if (proxy.logged === undefined) continue;
    const logged = (await proxy.logged(index + 1))[index];
    expect(logged.status, title).toBe(answer.status);
    if (expected.upstream !== undefined) expect(logged.upstream, title).toBe(expected.upstream);
    if (expected.resource !== undefined) expect(logged.resource, title).toBe(expected.resource);
  }
}

/** All peers of the upstream where one after the other gets requests; else the one that the method chooses. */
function inTurnWith(table: RouteTable, request: RequestSpec, drawn: string | undefined): (string | undefined)[] {
  const decision = table.decide(parseRequestSpec(request), 0, 0);
  if (decision.action !== "proxy" || decision.hash !== undefined) return [drawn];
  return table.peersOf(decision.upstreamKey).map(({ address, port }) => peerName({ address, port }));
}
