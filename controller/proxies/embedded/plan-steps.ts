import type { RoutingTable } from "../../../core-wasm/binding/api.js";
import { type HostPattern, patternText } from "../../../core-wasm/binding/source.js";
import { pieceKey, pieceOf } from "../../model/pieces.js";
import type { Upstream } from "../../model/types.js";
import type { Plan, PlanStep } from "../../reconcile/plan.js";
import { failureOf, UnsupportedError } from "../plan-step.js";
import type { ApplyFailure } from "../proxy.js";
import type { CertificateStore } from "./certificates.js";
import type { Traffic } from "./traffic.js";
import type { UpstreamRegistry } from "./upstream-registry.js";

/** Steps after which requests get their turn, so that a large plan does not hold up traffic. */
const STEPS_PER_TURN = 32;

export interface PlanTargets {
  table: RoutingTable;
  upstreams: UpstreamRegistry;
  certificates: CertificateStore;
  /** Learns which hosts there are. */
  traffic: Traffic | undefined;
  /** The peers of an upstream are others now; undefined if it is gone. In one turn with the change itself. */
  onUpstreamChanged(key: string, upstream: Upstream | undefined): void;
  /** Called once for a plan that changed what handshakes get. */
  onCertificatesChanged(): void;
}

/** Carries plans out, step by step, and knows which pieces are in place. */
export class PlanSteps {
  private readonly hosts = new Map<string, HostPattern>();

  constructor(private readonly targets: PlanTargets) {}

  /** Takes the steps in order. A step that fails leaves its piece as it was; the others go on. */
  async run(plan: Plan): Promise<ApplyFailure[]> {
    const failures: ApplyFailure[] = [];
    const steps = plan.full ? [...plan.steps, ...this.leftOver(plan.steps)] : plan.steps;
    let certificatesChanged = false;
    for (let i = 0; i < steps.length; i++) {
      if (i > 0 && i % STEPS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      const step = steps[i];
      try {
        if (this.take(step)) certificatesChanged = true;
      } catch (error) {
        failures.push(failureOf(step, error));
      }
    }
    if (certificatesChanged) this.targets.onCertificatesChanged();
    return failures;
  }

  /** True if the step changed what handshakes get. */
  private take(step: PlanStep): boolean {
    const { table, upstreams, certificates, traffic } = this.targets;
    switch (step.step) {
      case "set-certificate":
        return certificates.set(step.certificate);
      case "remove-certificate":
        return certificates.remove(step.host);
      case "set-upstream":
        if (step.upstream.transport.protocol === "grpc")
          throw new UnsupportedError("gRPC upstreams are not served yet");
        // Both in one turn: no request sees one without the other.
        table.setPeers(step.upstream.peers);
        upstreams.set(step.upstream);
        this.targets.onUpstreamChanged(step.upstream.peers.key, step.upstream);
        return false;
      case "remove-upstream":
        table.removePeers(step.key);
        upstreams.remove(step.key);
        this.targets.onUpstreamChanged(step.key, undefined);
        return false;
      case "set-host":
        table.setHost(step.rules);
        this.hosts.set(patternText(step.rules.pattern), step.rules.pattern);
        traffic?.addHost(patternText(step.rules.pattern));
        return false;
      case "remove-host":
        table.removeHost(step.pattern);
        this.hosts.delete(patternText(step.pattern));
        traffic?.removeHost(patternText(step.pattern));
        return false;
    }
  }

  /** Removals of what stands and what the steps of a full plan do not name, routes first. */
  private leftOver(steps: readonly PlanStep[]): PlanStep[] {
    const named = new Set(steps.map((step) => pieceKey(pieceOf(step))));
    const removals: PlanStep[] = [];
    for (const [text, pattern] of this.hosts) {
      if (!named.has(pieceKey({ kind: "host", piece: text }))) removals.push({ step: "remove-host", pattern });
    }
    for (const key of this.targets.upstreams.keys()) {
      if (!named.has(pieceKey({ kind: "upstream", piece: key }))) removals.push({ step: "remove-upstream", key });
    }
    for (const host of this.targets.certificates.hosts()) {
      if (!named.has(pieceKey({ kind: "certificate", piece: host })))
        removals.push({ step: "remove-certificate", host });
    }
    return removals;
  }
}
