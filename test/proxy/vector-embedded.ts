import type { PlanStep } from "../../controller/reconcile/plan.js";
import type { Vector } from "../model/model-support.js";
import { makeRoutingTable } from "../support/core.js";
import { startProxy } from "../support/harness.js";
import { type StandIns, StandInTable } from "./vector-peers.js";
import { type Serving, stepsOf } from "./vector-suite.js";

/** Puts the stand-ins in the place of the peers. */
function withStandIns(step: PlanStep, standIns: StandIns): PlanStep {
  if (step.step !== "set-upstream") return step;
  const { peers, transport } = step.upstream;
  const shown = peers.peers.map((peer) => standIns.toLoopback(peer));
  return { step: "set-upstream", upstream: { peers: { ...peers, peers: shown }, transport } };
}

/** The embedded proxy with what the objects of a vector give. */
export async function serveEmbedded(vector: Vector, standIns: StandIns): Promise<Serving> {
  const steps = stepsOf(vector);
  await standIns.openAll(steps);
  const table = new StandInTable(makeRoutingTable(), standIns);
  const { http, https, log } = await startProxy(
    steps.map((step) => withStandIns(step, standIns)),
    { table, trustedProxies: ["127.0.0.1"], random: () => 0 },
  );
  return { http, https, logged: () => log };
}
