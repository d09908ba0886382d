/** A proxy for OpenNJet over the map of certificates of a double, whose carrier takes all. */
import { expect } from "vitest";
import { OpenNjetProxy } from "../../controller/proxies/opennjet/opennjet-proxy.js";
import type { ApplyFailure } from "../../controller/proxies/proxy.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeCertificate } from "../support/certificates.js";
import { certificateStep, planOf } from "../support/plans.js";
import { type DrivenMapsOptions, drivenMaps } from "./driven-maps.js";

export const HOST = "shop.example.com";
export const A = makeCertificate("A", HOST);

/** A proxy whose carrier takes what `meanwhile` takes for a plan, and always serves. */
export function proxyOver(
  { api, certificates, logger }: Awaited<ReturnType<typeof drivenMaps>>,
  meanwhile: (steps: readonly PlanStep[]) => Promise<ApplyFailure[]> = async () => [],
): OpenNjetProxy {
  return new OpenNjetProxy({
    carrier: {
      listen: async () => undefined,
      addresses: () => ({ http: undefined, https: undefined }),
      metrics: () => [],
      apply: async ({ generation, steps }) => ({ generation, failures: await meanwhile(steps) }),
      setPeerStates: () => undefined,
      state: () => ({ generation: "", serving: true }),
      close: async () => undefined,
    },
    api,
    certificates,
    workers: undefined,
    logger,
    release: async () => undefined,
  });
}

/** Workers that can do without the map, with HOST in it, and a carrier whose plans take what a test does meanwhile. */
export async function withOwnWorkers(options: DrivenMapsOptions = {}) {
  /** What workers were told, in order: a version, or undefined. */
  const told: (string | undefined)[] = [];
  const carrier = {
    meanwhile: async (_steps: readonly PlanStep[]): Promise<ApplyFailure[]> => [],
    refusesToHear: 0,
    /** What workers say to whatever they are told; to a version only, where `toLeave` is false. */
    refusal: undefined as { error: Error; toLeave: boolean } | undefined,
  };
  const workers = {
    async set(version: string | undefined) {
      const { refusal } = carrier;
      if (refusal !== undefined && (refusal.toLeave || version !== undefined)) throw refusal.error;
      if (carrier.refusesToHear-- > 0) throw new Error("nobody answers");
      told.push(version);
    },
  };
  const maps = await drivenMaps({ ...options, workers });
  const proxy = proxyOver(maps, (steps) => carrier.meanwhile(steps));
  await proxy.complete();
  await proxy.apply(planOf(certificateStep(HOST, A)));
  maps.clock.advance(100);
  await maps.until(() => maps.certificates.settled);
  expect(told.at(-1)).toMatch(/^[0-9a-f]{16}$/);
  return { ...maps, proxy, carrier, told };
}
