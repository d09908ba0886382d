import type { HealthState } from "../../core-wasm/binding/health-tracker.js";
import type { PeerState } from "../../core-wasm/binding/source.js";
import type { EventSink, ObjectEvent } from "../observability/events.js";
import type { HealthMetrics } from "../observability/health-metrics.js";
import type { Logger } from "../observability/logger.js";
import type { PeerStateChange } from "../proxies/proxy.js";
import { authority } from "./connection.js";
import type { StateChange } from "./peer-book.js";

/** Where transitions go. */
export interface HealthListeners {
  logger: Logger;
  events: EventSink;
  metrics: HealthMetrics;
  /** The proxy. */
  setPeerStates(states: readonly PeerStateChange[]): void;
}

const EVENTS: Record<HealthState, { type: ObjectEvent["type"]; reason: string; says: string }> = {
  unchecked: { type: "Normal", reason: "PeerUnchecked", says: "is to be checked anew" },
  up: { type: "Normal", reason: "PeerUp", says: "is up" },
  down: { type: "Warning", reason: "PeerDown", says: "is down" },
  draining: { type: "Normal", reason: "PeerDraining", says: "drains" },
  "slow-start": { type: "Normal", reason: "PeerUp", says: "is up, and starts slowly" },
};

/** Tells of transitions: to the proxy first, then as a log line and a metric each; an Event says what goes down or is back. */
export class HealthReporter {
  readonly #listeners: HealthListeners;

  constructor(listeners: HealthListeners) {
    this.#listeners = listeners;
  }

  /** `counts`: peers in each state, after the changes. */
  transitions(changes: readonly StateChange[], counts: Readonly<Record<HealthState, number>>): void {
    const { logger, events, metrics } = this.#listeners;
    this.quietly(changes, counts);
    for (const { upstream, address, port, from, to, reason } of changes) {
      const peer = authority(address, port);
      const { type, reason: name, says } = EVENTS[to];
      logger[type === "Warning" ? "warn" : "info"]("peer", { upstream, peer, from, to, reason });
      metrics.peerTransition(upstream, from, to);
      // The first pass of a new peer is no news, or each start would tell of every peer.
      if (to !== "down" && from !== "down") continue;
      const message = `peer ${peer} of ${upstreamName(upstream)} ${says}${reason === "" ? "" : `: ${reason}`}`;
      events.record({ type, reason: name, object: objectOf(upstream), message });
    }
  }

  /** As `transitions`, of states that are no news: of peers that are gone, or found out before we began. */
  quietly(changes: readonly StateChange[], counts: Readonly<Record<HealthState, number>>): void {
    const states = changes
      .filter(({ from, to }) => proxyState(from) !== proxyState(to))
      .map(({ upstream, address, port, to }) => ({ upstream, address, port, state: proxyState(to) }));
    if (states.length > 0) this.#listeners.setPeerStates(states);
    this.#listeners.metrics.checkedPeers(counts);
  }
}

/** A proxy knows of no slow start: it ramps the weight of whoever comes up. */
function proxyState(state: HealthState): PeerState {
  return state === "slow-start" ? "up" : state;
}

/** The object of an upstream key, `kind/namespace/object/name`. */
function objectOf(upstream: string): ObjectEvent["object"] {
  const [kind = "", namespace = "", name = ""] = upstream.split("/");
  return { kind, namespace, name };
}

function upstreamName(upstream: string): string {
  return upstream.split("/").slice(3).join("/") || upstream;
}
