import { afterAll, describe, expect, it } from "vitest";
import { decisionJson } from "../../controller/cli/decision-json.js";
import { parseRequestSpec, type RequestSpec } from "../../controller/cli/request-line.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { modelOf, strictVectors, tableOfObjects, type Vector } from "../model/model-support.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, startProxy } from "../support/harness.js";
import { RawClient } from "../support/raw-client.js";
import { type PeerAnswer, StandIns, StandInTable } from "./vector-peers.js";

const standIns = new StandIns();
afterAll(() => standIns.close());
cleanUpAfterEach();

/** Puts the stand-ins in the place of the peers. */
function withStandIns(step: PlanStep): PlanStep {
  if (step.step !== "set-upstream") return step;
  const { peers, transport } = step.upstream;
  const shown = peers.peers.map((peer) => standIns.toLoopback(peer));
  return { step: "set-upstream", upstream: { peers: { ...peers, peers: shown }, transport } };
}

/** The embedded proxy with what the objects of a vector give. */
async function serve(vector: Vector) {
  const { steps } = new Planner().planFull(modelOf(vector.objects).snapshot());
  for (const step of steps) if (step.step === "set-upstream") await standIns.open(step.upstream.peers.peers);
  const table = new StandInTable(makeRoutingTable(), standIns);
  return startProxy(steps.map(withStandIns), { table, trustedProxies: ["127.0.0.1"], random: () => 0 });
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

describe("over HTTP, the strict vectors", () => {
  for (const vector of strictVectors()) {
    it(`of ${vector.name} get the answers that they ask for`, async () => {
      const started = await serve(vector);
      // The same table, asked directly: what is not in the vector must agree with it as well.
      const table = tableOfObjects(vector.objects);
      for (const [index, { request, expect: wanted }] of vector.cases.entries()) {
        const expected = wanted as Expected;
        const decision = decisionJson(table.decide(parseRequestSpec(request), 0));
        const { head, https } = wireForm(request);
        const client = https ? await RawClient.tls(started.https) : await RawClient.plain(started.http);
        client.write(head);
        const answer = parseAnswer(await client.end());
        const title = `${index + 1}: ${request.method ?? "GET"} ${request.url}`;

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
        const logged = started.log[index];
        expect(logged.status, title).toBe(answer.status);
        if (expected.upstream !== undefined) expect(logged.upstream, title).toBe(expected.upstream);
        if (expected.resource !== undefined) expect(logged.resource, title).toBe(expected.resource);
      }
    });
  }
});
