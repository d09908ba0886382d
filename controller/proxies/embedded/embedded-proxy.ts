import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import type { PeerStatus } from "../../../core-wasm/binding/decision.js";
import type { Upstream } from "../../model/types.js";
import type { MetricsSource } from "../../observability/metrics-text.js";
import type { Plan } from "../../reconcile/plan.js";
import { BalancingMetrics, type PeerNumbers } from "../balancing-metrics.js";
import { PeerStates } from "../peer-states.js";
import type { ApplyFailure, Proxy as DrivenProxy, PeerStateChange } from "../proxy.js";
import { selfSigned } from "../self-signed.js";
import { type ConnectionCounts, VtsMetrics } from "../vts-metrics.js";
import { Balancing } from "./balancing.js";
import { CertificateStore } from "./certificates.js";
import { TrustedNetworks } from "./client-address.js";
import { ClientConnections } from "./client-connections.js";
import { Listener } from "./listener.js";
import { type EmbeddedProxyOptions, type Settings, settingsOf } from "./options.js";
import { PeerQueues } from "./peer-queues.js";
import { PlanSteps } from "./plan-steps.js";
import type { ProxyShared } from "./proxy-shared.js";
import { Traffic } from "./traffic.js";
import { UpstreamRegistry } from "./upstream-registry.js";

const DAY = 86_400_000;
/** How often a closing proxy looks for connections that have become idle. */
const DRAIN_INTERVAL = 25;
/** A connection that was open when the proxy began to close has this long to bring a request. */
const LATE_REQUEST_TIME = 500;
const TICKET_KEY_SIZE = 48;

/**
 * The proxy inside the Node process. Every decision comes from the routing table; this class opens the ports,
 * keeps upstreams and certificates, and carries plans out.
 */
export class EmbeddedProxy implements DrivenProxy {
  private readonly certificates = new CertificateStore();
  private readonly peerStates = new PeerStates();
  private readonly steps: PlanSteps;
  private readonly shared: ProxyShared;
  private readonly plain: Listener | undefined;
  private readonly tls: Listener | undefined;
  private readonly started: number;
  private generation = "";
  private serving = false;
  private applying: Promise<unknown> = Promise.resolve();
  private closing: Promise<void> | undefined;

  /** Throws a RangeError for a bad entry of `trustedProxies`, and what TLS throws for a bad default certificate. */
  constructor(options: EmbeddedProxyOptions) {
    const settings = settingsOf(options);
    const queues = new PeerQueues();
    this.shared = {
      settings,
      balancing: new Balancing({ ...settings, queues }),
      queues,
      upstreams: new UpstreamRegistry(),
      trusted: new TrustedNetworks(settings.trustedProxies),
      exchanges: new Set(),
      connections: new ClientConnections(),
      traffic: settings.metrics ? new Traffic() : undefined,
      draining: false,
    };
    this.started = settings.now();
    this.steps = new PlanSteps({
      table: settings.table,
      upstreams: this.shared.upstreams,
      certificates: this.certificates,
      traffic: this.shared.traffic,
      onUpstreamChanged: (key, upstream) => this.upstreamChanged(key, upstream),
      onCertificatesChanged: () => this.tls?.forgetSessions(randomBytes(TICKET_KEY_SIZE)),
    });
    if (settings.http !== undefined) this.plain = Listener.plain(this.shared);
    if (settings.https !== undefined) {
      const fallback = settings.defaultCertificate ?? madeCertificate(settings);
      this.tls = Listener.tls(this.shared, this.certificates, fallback);
    }
  }

  /** Opens the ports. Rejects with the system's error, such as EADDRINUSE, with no port left open. */
  async listen(): Promise<void> {
    const { http, https } = this.shared.settings;
    if (this.plain !== undefined && http !== undefined) await this.plain.listen(http);
    if (this.tls !== undefined && https !== undefined) {
      try {
        await this.tls.listen(https);
      } catch (error) {
        await this.plain?.close();
        throw error;
      }
    }
    this.serving = true;
  }

  /** Where the open ports are bound. */
  addresses(): { http: AddressInfo | undefined; https: AddressInfo | undefined } {
    return { http: this.plain?.address, https: this.tls?.address };
  }

  /** Plans are applied one after another, in the order of the calls. */
  apply(plan: Plan): Promise<{ generation: string; failures: ApplyFailure[] }> {
    const result = this.applying.then(async () => {
      const failures = await this.steps.run(plan);
      this.generation = plan.generation;
      for (const failure of failures) this.shared.settings.logger.warn("step refused", { ...failure });
      return { generation: this.generation, failures };
    });
    this.applying = result.catch(() => undefined);
    return result;
  }

  setPeerStates(states: readonly PeerStateChange[]): void {
    const changed = new Set<string>();
    for (const state of states) {
      const { upstream, address, port } = state;
      const isNew = this.peerStates.set(state);
      this.applyState(state);
      changed.add(upstream);
      // What is idle would only be in the way of a peer that ends, and be stale when one comes back.
      const leaves = state.state === "down" || state.state === "draining";
      if (isNew && leaves) this.shared.upstreams.closeIdle(upstream, address, port);
    }
    for (const upstream of changed) this.shared.queues.placeFree(upstream);
  }

  state(): { generation: string; serving: boolean } {
    return { generation: this.generation, serving: this.serving };
  }

  /**
   * What was counted, as families `<prefix>_vts_*`, and the state of peers and queues. None where `metrics` is false.
   * @param version of the program, for `<prefix>_vts_info`.
   */
  metrics(prefix: string, version: string): MetricsSource[] {
    const { traffic, settings, upstreams, queues } = this.shared;
    const { table } = settings;
    if (traffic === undefined) return [];
    const vts = new VtsMetrics({
      prefix,
      version,
      started: this.started,
      now: () => performance.now(),
      traffic,
      connections: () => this.connectionCounts(),
      peers: () => upstreams.counted(),
    });
    const balancing = new BalancingMetrics({
      peers: () => upstreams.keys().map((upstream) => ({ upstream, count: () => countPeers(table.peersOf(upstream)) })),
      queues: () => queues.status(),
    });
    return [vts, balancing];
  }

  /** What is held right now; `waiting` exchanges are in a queue. Exchanges and draining pools go back to zero when no request is under way. */
  counts(): { exchanges: number; waiting: number; connections: number; openPools: number; drainingPools: number } {
    const pools = this.shared.upstreams.poolCount();
    return {
      exchanges: this.shared.exchanges.size,
      waiting: this.shared.queues.length,
      connections: (this.plain?.connections ?? 0) + (this.tls?.connections ?? 0),
      openPools: pools.open,
      drainingPools: pools.draining,
    };
  }

  /**
   * Stops accepting; requests under way and tunnels have `graceMs` to end, idle connections are closed at once and
   * each further answer carries `Connection: close`. What is left then is broken off. A second call waits for the first.
   */
  close(graceMs: number): Promise<void> {
    this.closing ??= this.drain(graceMs);
    return this.closing;
  }

  private upstreamChanged(key: string, upstream: Upstream | undefined): void {
    if (upstream === undefined) this.peerStates.forget(key);
    // Peers that stay keep their state in the table; one that is new there may be known to the checks already.
    else for (const state of this.peerStates.of(key)) this.applyState(state);
    this.shared.queues.set(key, upstream?.queue);
    this.shared.queues.placeFree(key);
  }

  private applyState({ upstream, address, port, state }: PeerStateChange): void {
    const { table, clock } = this.shared.settings;
    table.setPeerState(upstream, { address, port }, state, clock());
  }

  private connectionCounts(): ConnectionCounts {
    const sum = { accepted: 0, handled: 0, active: 0, reading: 0, writing: this.shared.exchanges.size };
    for (const listener of [this.plain, this.tls]) {
      if (listener === undefined) continue;
      const { accepted, handled, reading } = listener.connectionCounts();
      sum.accepted += accepted;
      sum.handled += handled;
      sum.reading += reading;
      sum.active += listener.connections;
    }
    return sum;
  }

  private async drain(graceMs: number): Promise<void> {
    this.serving = false;
    this.shared.draining = true;
    const listeners = [this.plain, this.tls].filter((listener) => listener !== undefined);
    const begun = performance.now();
    const closed = Promise.all(listeners.map((listener) => listener.close()));
    const sweep = setInterval(() => {
      const late = performance.now() - begun >= Math.min(LATE_REQUEST_TIME, graceMs);
      for (const listener of listeners) listener.closeIdle(late);
    }, DRAIN_INTERVAL);
    const cut = setTimeout(() => {
      for (const listener of listeners) listener.destroyAll();
    }, graceMs);
    await closed;
    clearInterval(sweep);
    clearTimeout(cut);
    await this.shared.upstreams.destroy();
  }
}

function countPeers(peers: readonly PeerStatus[]): PeerNumbers {
  const numbers = { unchecked: 0, up: 0, down: 0, draining: 0, out: 0 };
  for (const peer of peers) {
    numbers[peer.draining ? "draining" : peer.state]++;
    if (peer.out) numbers.out++;
  }
  return numbers;
}

function madeCertificate(settings: Settings): { chain: string; key: string } {
  const now = settings.now();
  return selfSigned({
    commonName: "default certificate",
    hosts: ["localhost"],
    notBefore: now - DAY,
    notAfter: now + 3650 * DAY,
  });
}
