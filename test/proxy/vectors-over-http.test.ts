import { afterAll, describe, it } from "vitest";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { modelOf, strictVectors, type Vector } from "../model/model-support.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, startProxy } from "../support/harness.js";
import { StandIns, StandInTable } from "./vector-peers.js";
import { holdsOverHttp, type VectorProxy } from "./vector-requests.js";

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
async function serve(vector: Vector): Promise<VectorProxy> {
  const { steps } = new Planner().planFull(modelOf(vector.objects).snapshot());
  for (const step of steps) if (step.step === "set-upstream") await standIns.open(step.upstream.peers.peers);
  const table = new StandInTable(makeRoutingTable(), standIns);
  const options = { table, trustedProxies: ["127.0.0.1"], random: () => 0 };
  const { http, https, log } = await startProxy(steps.map(withStandIns), options);
  return { http, https, logged: async () => log };
}

describe("over HTTP, the strict vectors", () => {
  for (const vector of strictVectors()) {
    it(`of ${vector.name} get the answers that they ask for`, async () => {
      await holdsOverHttp(vector, await serve(vector));
    });
  }
});
