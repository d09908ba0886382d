import { describe, expect, it } from "vitest";
import { Controller } from "../../controller/controller.js";
import { ControllerMetrics } from "../../controller/observability/controller-metrics.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { MetricsPage } from "../../controller/observability/metrics-page.js";
import { ProcessMetrics } from "../../controller/observability/process-metrics.js";
import type { ApplyFailure, Proxy as DrivenProxy } from "../../controller/proxies/proxy.js";
import type { Plan, PlanStep } from "../../controller/reconcile/plan.js";
import { makeCertificate } from "../support/certificates.js";
import { patternChecker } from "../support/core.js";
import { parseMetrics, seriesValue } from "../support/metrics-page.js";

/** A controller whose proxy answers as `apply` says, and what its metrics are now. */
function controllerWith(
  apply: (plan: Plan) => ApplyFailure[] = () => [],
  retried: (plan: Plan) => readonly PlanStep[] = () => [],
) {
  const metrics = new ControllerMetrics();
  const proxy: DrivenProxy = {
    apply: async (plan: Plan) => ({ generation: plan.generation, failures: apply(plan), retried: retried(plan) }),
    state: () => ({ generation: "", serving: true }),
    setPeerStates: () => undefined,
    close: async () => undefined,
  };
  const controller = new Controller({ checker: patternChecker(), proxy, logger: silentLogger, metrics });
  const page = new MetricsPage([metrics], 100);
  return { controller, families: async () => parseMetrics((await page.render()).toString()) };
}

function ingress(host: string, tls?: string) {
  const object = {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: "shop", namespace: "default" },
    spec: {
      ...(tls === undefined ? {} : { tls: [{ hosts: [host], secretName: tls }] }),
      rules: [
        {
          host,
          http: {
            paths: [{ path: "/", pathType: "Prefix", backend: { service: { name: "web", port: { number: 80 } } } }],
          },
        },
      ],
    },
  };
  return { kind: "Ingress" as const, namespace: "default", name: "shop", object };
}

function secret(pair: { chain: string; key: string } | undefined) {
  const encode = (text: string) => Buffer.from(text).toString("base64");
  const object = pair && {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: { name: "shop-tls", namespace: "default" },
    data: { "tls.crt": encode(pair.chain), "tls.key": encode(pair.key) },
  };
  return { kind: "Secret" as const, namespace: "default", name: "shop-tls", object };
}

const EXPIRY = "njet_kic_certificate_expiry_timestamp_seconds";

describe("the metrics of the controller", () => {
  it("count plans, their steps and time, and name the generation in force", async () => {
    const { controller, families } = controllerWith();
    await controller.change([ingress("shop.example.com")]);
    const first = await families();
    expect(seriesValue(first, "njet_kic_apply_duration_seconds_count")).toBe(1);
    expect(seriesValue(first, "njet_kic_apply_steps_total", { step: "set-host" })).toBe(1);
    expect(first.get("njet_kic_generation_info")?.samples).toMatchObject([
      { labels: { generation: expect.stringMatching(/^1-[0-9a-f]{16}$/) }, value: 1 },
    ]);
    await controller.change([{ ...ingress(""), object: undefined }]);
    const second = await families();
    expect(seriesValue(second, "njet_kic_apply_steps_total", { step: "remove-host" })).toBe(1);
    expect(second.get("njet_kic_generation_info")?.samples).toHaveLength(1);
  });

  it("count steps that the proxy refuses, and plans that fail", async () => {
    let broken = false;
    const { controller, families } = controllerWith(() => {
      if (broken) throw new Error("gone");
      return [{ kind: "host", piece: "shop.example.com", code: "CORE_LIMIT", message: "too much" }];
    });
    await controller.change([ingress("shop.example.com")]);
    broken = true;
    await controller.change([ingress("other.example.com")]);
    expect(seriesValue(await families(), "njet_kic_apply_steps_refused_total")).toBe(1);
    expect(seriesValue(await families(), "njet_kic_apply_errors_total")).toBe(1);
  });

  it("count objects by kind and state, as they are now", async () => {
    const { controller, families } = controllerWith();
    const states = async () =>
      (await families()).get("njet_kic_objects")?.samples.map(({ labels, value }) => [labels.state, value]);
    await controller.change([ingress("not a host")]);
    expect(await states()).toEqual([["Invalid", 1]]);
    await controller.change([ingress("shop.example.com")]);
    expect(await states()).toEqual([["Warning", 1]]);
    await controller.change([{ ...ingress(""), object: undefined }]);
    expect(await states()).toEqual([]);
  });

  it("say when the certificate of a host ends, as long as there is one", async () => {
    const { controller, families } = controllerWith();
    await controller.change([
      ingress("shop.example.com", "shop-tls"),
      secret(makeCertificate("a", "shop.example.com")),
    ]);
    const labels = { host: "shop.example.com", secret: "Secret/default/shop-tls" };
    expect(seriesValue(await families(), EXPIRY, labels)).toBeGreaterThan(Date.now() / 1000);
    await controller.change([secret(undefined)]);
    expect((await families()).get(EXPIRY)?.samples).toEqual([]);
  });

  it("say when a certificate ends that the proxy has taken later than its plan", async () => {
    let first: readonly PlanStep[] = [];
    const refused = ({ steps }: Plan): ApplyFailure[] => {
      if (first.length > 0) return [];
      first = steps.filter(({ step }) => step === "set-certificate");
      return [{ kind: "certificate", piece: "shop.example.com", code: "PROXY_CERTIFICATES_FULL", message: "no room" }];
    };
    const { controller, families } = controllerWith(refused, ({ generation }) =>
      generation.startsWith("2-") ? first : [],
    );
    const labels = { host: "shop.example.com", secret: "Secret/default/shop-tls" };
    await controller.change([
      ingress("shop.example.com", "shop-tls"),
      secret(makeCertificate("a", "shop.example.com")),
    ]);
    expect((await families()).get(EXPIRY)?.samples).toEqual([]);
    await controller.change([{ ...ingress("other.example.com"), name: "other" }]);
    expect(seriesValue(await families(), EXPIRY, labels)).toBeGreaterThan(Date.now() / 1000);
  });

  it("count what active checks find out, and forget an upstream that is gone", async () => {
    const metrics = new ControllerMetrics();
    metrics.health.peerTransition("Ingress/default/shop/web", "unchecked", "up");
    metrics.health.peerTransition("Ingress/default/shop/web", "up", "down");
    metrics.health.peerTransition("Ingress/default/shop/web", "up", "down");
    metrics.health.checkedPeers({ unchecked: 0, up: 2, down: 1 });
    const families = async () => parseMetrics((await new MetricsPage([metrics], 100).render()).toString());
    const down = { upstream: "Ingress/default/shop/web", from: "up", to: "down" };
    expect(seriesValue(await families(), "njet_kic_health_transitions_total", down)).toBe(2);
    expect(seriesValue(await families(), "njet_kic_health_checked_peers", { state: "up" })).toBe(2);
    const steps = [{ step: "remove-upstream", key: "Ingress/default/shop/web" }];
    metrics.applied({ generation: "2-0", steps }, 0.01, 0);
    expect((await families()).get("njet_kic_health_transitions_total")?.samples).toEqual([]);
  });

  it("keep to the limit where there are more certificates", async () => {
    const metrics = new ControllerMetrics();
    const { chain } = makeCertificate("a", "a.example.com");
    for (let i = 0; i < 5; i++) metrics.certificate(`h${i}.example.com`, { resource: "Secret/default/a", chain });
    const families = parseMetrics((await new MetricsPage([metrics], 3).render()).toString());
    expect(families.get(EXPIRY)?.samples).toHaveLength(3);
    expect(seriesValue(families, "njet_kic_metrics_series_dropped")).toBe(2);
  });
});

describe("the metrics of the process", () => {
  it("show processor time, memory and a late event loop", async () => {
    const own = new ProcessMetrics();
    try {
      const page = new MetricsPage([own], 1);
      const lag = async (le: string) =>
        seriesValue(parseMetrics((await page.render()).toString()), "njet_kic_event_loop_lag_seconds_bucket", { le });
      const until = performance.now() + 400;
      while (performance.now() < until);
      while (((await lag("+Inf")) ?? 0) < 1) await new Promise((resolve) => setTimeout(resolve, 10));
      expect(await lag("0.25")).toBeLessThan((await lag("+Inf")) ?? 0);
      const families = parseMetrics((await page.render()).toString());
      expect(seriesValue(families, "njet_kic_process_cpu_seconds_total", { mode: "user" })).toBeGreaterThan(0);
      expect(seriesValue(families, "njet_kic_process_resident_memory_bytes")).toBeGreaterThan(1e6);
    } finally {
      own.close();
    }
  });
});
