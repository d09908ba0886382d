import { describe, expect, it } from "vitest";
import { Controller } from "../../controller/controller.js";
import { silentLogger } from "../../controller/observability/logger.js";
import type { Proxy as DrivenProxy } from "../../controller/proxies/proxy.js";
import type { Kind } from "../../controller/resources/object-ref.js";
import { makeCertificate } from "../support/certificates.js";
import { patternChecker } from "../support/core.js";
import { cleanUpAfterEach, startProxy } from "../support/harness.js";
import { weakCertificate } from "../support/weak-certificate.js";
import { changeOf, removalOf, type SourceObject, stateText } from "./model-support.js";

cleanUpAfterEach();

/** A controller that drives a real proxy; `told` holds the objects of the last change whose state may be another one. */
async function controllerOf(...objects: SourceObject[]) {
  const { proxy } = await startProxy([]);
  return follow(proxy, objects);
}

async function follow(proxy: DrivenProxy, objects: SourceObject[]) {
  let told: string[] = [];
  const controller = new Controller({
    checker: patternChecker(),
    proxy,
    logger: silentLogger,
    onApplied: (names) => {
      told = [...names];
    },
  });
  const change = (...changes: SourceObject[]) => controller.change(changes.map(changeOf));
  await change(...objects);
  return {
    change,
    remove: (object: SourceObject) => controller.change([removalOf(object)]),
    state: (kind: Kind, name: string) => stateText(controller.model, kind, name),
    messages: (kind: Kind, name: string) =>
      controller.model.problems({ kind, namespace: "default", name })?.problems.map(({ message }) => message),
    told: () => told,
  };
}

const service: SourceObject = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "api" },
  spec: { ports: [{ port: 80 }] },
};

function virtualServer(name: string, spec: Record<string, unknown> = {}): SourceObject {
  return {
    apiVersion: "k8s.njet.org/v1",
    kind: "VirtualServer",
    metadata: { name },
    spec: {
      host: `${name}.example.com`,
      upstreams: [{ name: "api", service: "api", port: 80 }],
      routes: [{ path: "/", action: { pass: "api" } }],
      ...spec,
    },
  };
}

const rpc = { upstreams: [{ name: "api", service: "api", port: 80, type: "grpc" }] };

/** More headers than the rules of one host can look at. */
function greedy(name: string): SourceObject {
  const conditions = Array.from({ length: 130 }, (_, index) => ({ header: `x-${index}`, value: "yes" }));
  const matches = Array.from({ length: 13 }, (_, index) => ({
    conditions: conditions.slice(index * 10, index * 10 + 10),
    action: { pass: "api" },
  }));
  return virtualServer(name, { routes: [{ path: "/", matches, action: { pass: "api" } }] });
}

function secret(pair: { chain: string; key: string }): SourceObject {
  const stringData = { "tls.crt": pair.chain, "tls.key": pair.key };
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "pair" }, type: "kubernetes.io/tls", stringData };
}

function ingress(name: string, host: string, tls = true): SourceObject {
  const backend = { service: { name: "api", port: { number: 80 } } };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name },
    spec: {
      ...(tls ? { tls: [{ hosts: [host], secretName: "pair" }] } : {}),
      rules: [{ host, http: { paths: [{ path: `/${name}`, pathType: "Prefix", backend }] } }],
    },
  };
}

describe("an object of which the proxy refuses a part", () => {
  it("says so where an upstream is refused, and is well again once a later plan has it taken", async () => {
    const { change, state, messages, told } = await controllerOf(service, virtualServer("shop", rpc));
    const bad = "Warning AddedOrUpdatedWithError PROXY_UNSUPPORTED@spec.upstreams[0]";
    expect(state("VirtualServer", "shop")).toContain(bad);
    expect(messages("VirtualServer", "shop")?.[0]).toBe(
      'the proxy refuses the upstream "api" and keeps what it had: gRPC upstreams are not served yet',
    );
    expect(told()).toContain("VirtualServer/default/shop");
    await change(virtualServer("shop"));
    expect(state("VirtualServer", "shop")).toBe("Valid AddedOrUpdated");
  });

  it("is Invalid where the rules of its host are refused, with what the core says", async () => {
    const { change, state, messages } = await controllerOf(service, greedy("shop"), virtualServer("other"));
    expect(state("VirtualServer", "shop")).toBe("Invalid AddedOrUpdatedWithError CORE_LIMIT@");
    expect(messages("VirtualServer", "shop")?.[0]).toContain('the rules of "shop.example.com"');
    expect(state("VirtualServer", "other")).toBe("Valid AddedOrUpdated");
    await change(virtualServer("shop"));
    expect(state("VirtualServer", "shop")).toBe("Valid AddedOrUpdated");
  });

  it("leaves nothing behind when it goes", async () => {
    const { change, remove, state, told } = await controllerOf(service, greedy("shop"));
    await remove(greedy("shop"));
    expect(state("VirtualServer", "shop")).toBe("absent");
    await change(virtualServer("shop"));
    expect(state("VirtualServer", "shop")).toBe("Valid AddedOrUpdated");
    expect(told()).toContain("VirtualServer/default/shop");
  });

  it("learns of a refused certificate by the Secret that it names, as all others that name it for the host do", async () => {
    const host = "weak.example.com";
    const { change, state, told } = await controllerOf(
      service,
      secret(weakCertificate),
      ingress("one", host),
      ingress("two", host),
      ingress("plain", host, false),
    );
    const bad = /^Warning AddedOrUpdatedWithError PROXY_CERTIFICATE_INVALID@spec\.tls\[0\]/;
    expect(state("Ingress", "one")).toMatch(bad);
    expect(state("Ingress", "two")).toMatch(bad);
    expect(state("Ingress", "plain")).toBe("Valid AddedOrUpdated");
    await change(secret(makeCertificate("good", host)));
    expect(state("Ingress", "one")).toBe("Valid AddedOrUpdated");
    expect(told()).toEqual(expect.arrayContaining(["Ingress/default/one", "Ingress/default/two"]));
  });

  it("does not complain of a refused certificate that it no longer asks for", async () => {
    const host = "weak.example.com";
    const { change, state } = await controllerOf(
      service,
      secret(weakCertificate),
      ingress("one", host),
      ingress("two", host),
    );
    await change(ingress("two", host, false));
    expect(state("Ingress", "two")).toBe("Valid AddedOrUpdated");
    expect(state("Ingress", "one")).toContain("AddedOrUpdatedWithError");
  });

  it("keeps its other problems, after those of the proxy", async () => {
    const { state } = await controllerOf(virtualServer("shop", rpc));
    const [first, ...others] = state("VirtualServer", "shop").split(" ").slice(2);
    expect(first).toBe("PROXY_UNSUPPORTED@spec.upstreams[0].service");
    expect(others).toContain("SERVICE_MISSING@spec.upstreams[0].service");
  });

  it("is told of all of its pieces where a plan fails as a whole", async () => {
    const { proxy } = await startProxy([]);
    let broken = true;
    // The embedded proxy never fails as a whole; one that is reached over a connection can.
    const reached: DrivenProxy = {
      apply: async (plan) => {
        if (broken) throw new Error("connection lost");
        return proxy.apply(plan);
      },
      setPeerStates: (states) => proxy.setPeerStates(states),
      state: () => proxy.state(),
      close: (graceMs) => proxy.close(graceMs),
    };
    const { change, state, messages } = await follow(reached, [service, virtualServer("shop")]);
    expect(state("VirtualServer", "shop")).toMatch(/^Invalid AddedOrUpdatedWithError PROXY_STEP_FAILED@/);
    expect(messages("VirtualServer", "shop")?.[0]).toContain("connection lost");
    broken = false;
    await change(virtualServer("shop", { routes: [{ path: "/new", action: { pass: "api" } }] }));
    expect(state("VirtualServer", "shop")).not.toContain("Invalid");
  });
});
