/** What workers that hold certificates themselves have while the map of them changes: over a double, with a clock that stands still. */
import { describe, expect, it } from "vitest";
import { MapSwitchRefusedError } from "../../controller/proxies/opennjet/map-switch.js";
import type { ApplyFailure } from "../../controller/proxies/proxy.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { actionHost, certificateStep, planOf } from "../support/plans.js";
import { A, HOST, withOwnWorkers } from "./driven-proxy.js";

cleanUpAfterEach();

const B = makeCertificate("B", HOST);

/** Long enough for what a look would do, which is a matter of milliseconds. */
const A_WHILE = 300;

describe("Workers that can answer by themselves", () => {
  it("are off the map as long as a plan with certificates is carried out, however long that takes", async () => {
    const { proxy, carrier, told, clock, certificates, until, contents } = await withOwnWorkers();
    const version = told.at(-1);
    let during: typeof told = [];
    carrier.meanwhile = async () => {
      // Longer than from one look to the next.
      for (let second = 0; second < 11; second++) clock.advance(1_000);
      await new Promise((resolve) => setTimeout(resolve, A_WHILE));
      during = [...told];
      return [];
    };
    await proxy.apply(planOf(certificateStep(HOST, B)));
    expect(during.at(-1)).toBe(undefined);
    expect(told.at(-1)).toBe(undefined);
    clock.advance(100);
    await until(() => certificates.settled);
    expect(told.at(-1)).toBe(version);
    expect(contents()).toEqual([`${B.chain.trim()}\n${B.key.trim()}\n`]);
  });

  it.each([
    [
      "is refused",
      async (): Promise<ApplyFailure[]> => [
        { kind: "certificate", piece: HOST, code: "PROXY_STEP_FAILED", message: "" },
      ],
    ],
    ["fails", () => Promise.reject(new Error("the carrier is broken"))],
  ])("are back on the map after a plan that %s", async (_title, meanwhile) => {
    const { proxy, carrier, told, clock, certificates, until, contents } = await withOwnWorkers();
    const version = told.at(-1);
    carrier.meanwhile = meanwhile;
    await proxy.apply(planOf(certificateStep(HOST, B))).catch(() => undefined);
    expect(told.at(-1)).toBe(undefined);
    clock.advance(100);
    await until(() => certificates.settled);
    expect(told.at(-1)).toBe(version);
    expect(contents()).toEqual([`${A.chain.trim()}\n${A.key.trim()}\n`]);
  });

  it("answer by themselves where there are more hosts than the map can have, and from the map when there are less again", async () => {
    const { proxy, told, clock, certificates, until, hosts, files } = await withOwnWorkers({ mostHosts: 2 });
    const names = [HOST, "b.example.com", "c.example.com"];
    const settle = async () => {
      clock.advance(100);
      await until(() => certificates.settled);
    };
    expect((await proxy.apply(planOf(...names.map((name) => certificateStep(name, A))))).failures).toEqual([]);
    await settle();
    expect(told.at(-1)).toBe(undefined);
    expect(hosts()).toEqual([]);
    expect(files()).toEqual([]);
    await proxy.apply(planOf({ step: "remove-certificate", host: names[2] }));
    await settle();
    expect(told.at(-1)).not.toBe(undefined);
    expect(hosts()?.sort()).toEqual(names.slice(0, 2).sort());
    expect(files()).toHaveLength(2);
  });

  it("that do not answer are waited for before a plan is carried out, and nothing of it is lost", async () => {
    const { proxy, carrier, told, clock, certificates, until, contents } = await withOwnWorkers();
    carrier.refusesToHear = 3;
    let begun = false;
    carrier.meanwhile = async () => {
      begun = true;
      return [];
    };
    const applied = proxy.apply(planOf(certificateStep(HOST, B)));
    for (const wait of [100, 200, 400]) {
      await until(() => clock.waits(wait));
      expect(begun).toBe(false);
      clock.advance(wait);
    }
    expect((await applied).failures).toEqual([]);
    clock.advance(100);
    await until(() => certificates.settled);
    expect(told.at(-1)).not.toBe(undefined);
    expect(contents()).toEqual([`${B.chain.trim()}\n${B.key.trim()}\n`]);
  });

  it("that do not answer are told of in the log when they were asked three times, once", async () => {
    const { proxy, carrier, clock, until, said } = await withOwnWorkers();
    carrier.refusesToHear = 5;
    const waits = "a plan with certificates waits for the workers of opennjet";
    const applied = proxy.apply(planOf(certificateStep(HOST, B)));
    const seen: number[] = [];
    for (const wait of [100, 200, 400, 800, 1_600]) {
      await until(() => clock.waits(wait));
      seen.push(said.filter((message) => message === waits).length);
      clock.advance(wait);
    }
    await applied;
    expect(seen).toEqual([0, 0, 1, 1, 1]);
  });

  it("that refuse to leave the map have certificates refused at once, each on its object, and all else of the plan carried out", async () => {
    const { proxy, carrier, clock, certificates, until, contents, said } = await withOwnWorkers();
    const error = new MapSwitchRefusedError("PROXY_STATE_FULL", undefined, "the shared state has no room");
    carrier.refusal = { error, toLeave: true };
    let carriedOut: readonly PlanStep[] = [];
    carrier.meanwhile = async (steps) => {
      carriedOut = steps;
      return [];
    };
    const host = actionHost(HOST, { kind: "return", status: 200, contentType: "text/plain", body: [] });
    const { failures } = await proxy.apply(planOf(certificateStep(HOST, B), host));
    expect(failures).toEqual([{ kind: "certificate", piece: HOST, code: "PROXY_STATE_FULL", message: error.message }]);
    expect(error.message).toContain("--nginx-state-size");
    expect(carriedOut).toEqual([host]);
    // The map is tried again meanwhile, as it was.
    await until(() => clock.waits(100));
    clock.advance(100);
    await until(() => said.includes("the map of certificates can't be brought in step yet"));
    carrier.refusal = undefined;
    await until(() => clock.waits(10_000));
    clock.advance(10_000);
    await until(() => certificates.settled);
    expect(said).toContain("the map of certificates is in step again");
    expect(contents()).toEqual([`${A.chain.trim()}\n${A.key.trim()}\n`]);
  });

  it("that refuse to hear of a map answer by themselves, which is told at once, and rely on it when they take it", async () => {
    const { proxy, carrier, told, clock, certificates, until, said, files } = await withOwnWorkers();
    const error = new MapSwitchRefusedError("PROXY_STATE_FULL", "v", "the shared state has no room");
    carrier.refusal = { error, toLeave: false };
    const other = certificateStep("other.example.com", A);
    expect((await proxy.apply(planOf({ step: "remove-certificate", host: HOST }, other))).failures).toEqual([]);
    clock.advance(100);
    await until(() => said.includes("the map of certificates can't be brought in step yet"));
    expect(told.at(-1)).toBe(undefined);
    // Nobody looks into the map now that named it.
    expect(files()).toHaveLength(1);
    carrier.refusal = undefined;
    await until(() => clock.waits(100));
    clock.advance(100);
    await until(() => certificates.settled);
    expect(told.at(-1)).toMatch(/^[0-9a-f]{16}$/);
  });

  it("that never answer keep nobody from ending: the plan that waits for them is given up", async () => {
    const { proxy, carrier, clock, until } = await withOwnWorkers();
    carrier.refusesToHear = Number.POSITIVE_INFINITY;
    const applied = proxy.apply(planOf(certificateStep(HOST, B)));
    const outcome = expect(applied).rejects.toThrow("nobody answers");
    await until(() => clock.waits(100));
    await proxy.close(0);
    await outcome;
  });

  it("are told of the map once more where OpenNJet is started anew while they are told of it", async () => {
    const { proxy, told, clock, certificates, until } = await withOwnWorkers();
    await proxy.apply(planOf(certificateStep("other.example.com", A)));
    clock.advance(100);
    certificates.restarted();
    await until(() => told.at(-1) !== undefined);
    expect(certificates.settled).toBe(false);
    told.length = 0;
    await until(() => clock.waits(0));
    clock.advance(0);
    await until(() => certificates.settled);
    expect(told.at(-1)).not.toBe(undefined);
  });
});
