import { expect, it } from "vitest";
import { decisionJson } from "../../controller/cli/decision-json.js";
import { parseRequestSpec, type RequestSpec } from "../../controller/cli/request-line.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { modelOf, strictVectors, tableOfObjects, type Vector } from "../model/model-support.js";
import { RawClient } from "../support/raw-client.js";
import type { PeerAnswer } from "./vector-peers.js";

/** A proxy that serves what the objects of a vector give, with stand-ins where the peers are. */
export interface Serving {
  /** Port of the plain listener. */
  http: number;
  /** Port of the TLS listener. */
  https: number;
  /** The first `count` lines of the access log, in the order of the requests. */
  logged(count: number): Promise<Record<string, unknown>[]> | Record<string, unknown>[];
}

/** The plan for the objects of a vector. */
export function stepsOf(vector: Vector): PlanStep[] {
  return new Planner().planFull(modelOf(vector.objects).snapshot()).steps;
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
  type?: string;
}

/** The one answer of a closed connection; its length is given by Content-Length or by chunks. */
function parseAnswer(received: string): WireAnswer {
  const end = received.indexOf("\r\n\r\n");
  const head = received.slice(0, end);
  const body = received.slice(end + 4);
  const type = /^content-type: (.*)$/im.exec(head)?.[1];
  const location = /^location: (.*)$/im.exec(head)?.[1];
  const text = /^transfer-encoding: chunked/im.test(head) ? body.split("\r\n")[1] : body;
  return {
    status: Number(head.split(" ")[1]),
    body: text,
    type,
    ...(location === undefined ? {} : { location }),
  };
}

type Expected = Vector["cases"][number]["expect"] & {
  action: "proxy" | "return" | "redirect";
  target?: string;
  peer?: string;
  location?: string;
  body?: string;
  resource?: string;
};

/**
 * One test for each strict vector: every request as bytes on the wire, answered as the vector asks for. `reference`: another
 * proxy whose answers have to be the same.
 */
export function testVectorsOverHttp(
  serve: (vector: Vector) => Promise<Serving>,
  reference?: (vector: Vector) => Promise<Serving>,
): void {
  for (const vector of strictVectors()) {
    it(`of ${vector.name} get the answers that they ask for`, async () => {
      const served = await serve(vector);
      const other = await reference?.(vector);
      // The same table, asked directly: what is not in the vector must agree with it as well.
      const table = tableOfObjects(vector.objects);
      for (const [index, { request, expect: wanted }] of vector.cases.entries()) {
        const expected = wanted as Expected;
        const decision = decisionJson(table.decide(parseRequestSpec(request), 0));
        const answer = await answerOf(served, request);
        const title = `${index + 1}: ${request.method ?? "GET"} ${request.url}`;
        if (other !== undefined) expect(answer, title).toEqual(await answerOf(other, request));
        if (expected.action === "proxy") {
          expect(answer.status, `${title} ${answer.body}`).toBe(200);
          const reached = JSON.parse(answer.body) as PeerAnswer;
          expect(reached, title).toEqual({
            peer: expected.peer ?? decision.peer,
            method: request.method ?? "GET",
            target: expected.target ?? decision.target,
          });
        } else {
          expect(answer.status, title).toBe(expected.status);
          if (expected.location !== undefined) expect(answer.location, title).toBe(expected.location);
          if (expected.body !== undefined) expect(answer.body, title).toBe(expected.body);
        }
        const logged = (await served.logged(index + 1))[index];
        expect(logged.status, title).toBe(answer.status);
        if (expected.upstream !== undefined) expect(logged.upstream, title).toBe(expected.upstream);
        if (expected.resource !== undefined) expect(logged.resource, title).toBe(expected.resource);
      }
    });
  }
}

/** The answer to one request on a connection of its own. */
async function answerOf({ http, https }: Serving, spec: RequestSpec): Promise<WireAnswer> {
  const form = wireForm(spec);
  const client = form.https ? await RawClient.tls(https) : await RawClient.plain(http);
  client.write(form.head);
  return parseAnswer(await client.end());
}
