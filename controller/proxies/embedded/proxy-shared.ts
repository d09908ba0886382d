import type { Socket } from "node:net";
import type { TrustedNetworks } from "./client-address.js";
import type { Exchange } from "./exchange.js";
import type { Settings } from "./options.js";
import type { UpstreamRegistry } from "./upstream-registry.js";

/** What all exchanges of a proxy share. */
export interface ProxyShared {
  readonly settings: Settings;
  readonly upstreams: UpstreamRegistry;
  readonly trusted: TrustedNetworks;
  /** Every exchange that is not over; empty when the proxy is idle. */
  readonly exchanges: Set<Exchange>;
  /** Connections that were told to close: what else arrives on them is not looked at. */
  readonly refused: WeakSet<Socket>;
  draining: boolean;
}
