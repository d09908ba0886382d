import type { Balancing } from "./balancing.js";
import type { TrustedNetworks } from "./client-address.js";
import type { ClientConnections } from "./client-connections.js";
import type { Exchange } from "./exchange.js";
import type { Settings } from "./options.js";
import type { PeerQueues } from "./peer-queues.js";
import type { Traffic } from "./traffic.js";
import type { UpstreamRegistry } from "./upstream-registry.js";

/** What all exchanges of a proxy share. */
export interface ProxyShared {
  readonly settings: Settings;
  readonly balancing: Balancing;
  readonly queues: PeerQueues;
  readonly upstreams: UpstreamRegistry;
  readonly trusted: TrustedNetworks;
  /** Every exchange that is not over; empty when the proxy is idle. */
  readonly exchanges: Set<Exchange>;
  readonly connections: ClientConnections;
  /** Undefined where requests are not counted. */
  readonly traffic: Traffic | undefined;
  draining: boolean;
}
