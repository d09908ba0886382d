import { describe, expect, it } from "vitest";
import { Controller } from "../../controller/controller.js";
import { silentLogger } from "../../controller/observability/logger.js";
import type { Proxy as DrivenProxy } from "../../controller/proxies/proxy.js";
import type { Plan } from "../../controller/reconcile/plan.js";
import { changeOf, type SourceObject } from "../model/model-support.js";
import { patternChecker } from "../support/core.js";
import { cleanUpAfterEach, cleanup, startProxy } from "../support/harness.js";
import { ask } from "../support/http-client.js";

cleanUpAfterEach();

/** A host that is redirected to `to`. */
function redirecting(name: string, to: string): SourceObject {
  return {
    apiVersion: "k8s.njet.org/v1",
    kind: "VirtualServer",
    metadata: { name },
    spec: { host: `${name}.example.com`, routes: [{ path: "/", action: { redirect: { url: to, code: 302 } } }] },
  };
}

/** A controller whose proxy carries a plan out only when it is let. */
async function startHeldBack() {
  const { proxy, http } = await startProxy([]);
  const plans: Plan[] = [];
  let letGo = () => {};
  const held: DrivenProxy = {
    async apply(plan) {
      plans.push(plan);
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
      return proxy.apply(plan);
    },
    setPeerStates: (states) => proxy.setPeerStates(states),
    state: () => proxy.state(),
    close: (graceMs) => proxy.close(graceMs),
  };
  const applied: string[][] = [];
  const controller = new Controller({
    checker: patternChecker(),
    proxy: held,
    logger: silentLogger,
    onApplied: (objects) => applied.push([...objects].sort()),
  });
  cleanup(async () => {
    const closed = controller.close();
    letGo();
    await closed;
  });
  const change = (...objects: SourceObject[]) => controller.change(objects.map(changeOf));
  const locationOf = async (name: string) => (await ask(http, { host: `${name}.example.com` })).headers.location;
  return { controller, plans, applied, change, locationOf, letGo: () => letGo() };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("changes that come while a plan is under way", () => {
  it("are carried out together, as one plan with the last state of each piece", async () => {
    const { plans, applied, change, locationOf, letGo } = await startHeldBack();
    const first = change(redirecting("a", "http://first.example.com/"));
    await turn();
    const later = Array.from({ length: 50 }, (_, i) => change(redirecting("a", `http://${i}.example.com/`)));
    later.push(change(redirecting("b", "http://other.example.com/")));
    expect(plans).toHaveLength(1);
    letGo();
    await first;
    expect(await locationOf("a")).toBe("http://first.example.com/");
    await turn();
    letGo();
    await Promise.all(later);
    expect(plans.map(({ steps }) => steps.map(({ step }) => step))).toEqual([["set-host"], ["set-host", "set-host"]]);
    expect(await locationOf("a")).toBe("http://49.example.com/");
    expect(await locationOf("b")).toBe("http://other.example.com/");
    expect(applied).toEqual([["VirtualServer/default/a"], ["VirtualServer/default/a", "VirtualServer/default/b"]]);
  });

  it("leave nothing where one takes back what another has brought", async () => {
    const { plans, change, controller, locationOf, letGo } = await startHeldBack();
    const first = change(redirecting("a", "http://first.example.com/"));
    await turn();
    const brought = change(redirecting("b", "http://other.example.com/"));
    const gone = controller.change([{ kind: "VirtualServer", namespace: "default", name: "b", object: undefined }]);
    letGo();
    await first;
    await turn();
    letGo();
    await Promise.all([brought, gone]);
    expect(plans[1].steps.map(({ step }) => step)).toEqual(["remove-host"]);
    expect(await locationOf("b")).toBeUndefined();
  });
});
