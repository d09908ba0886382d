/** Upstreams as entries of `/configuration/backends`. */
import type { PeerState } from "../../../../core-wasm/binding/source.js";
import type { Upstream, UpstreamTransport } from "../../../model/types.js";
import type { Backend } from "../api/backends-api.js";
import type { BalancerName } from "../parts.js";
import { digest } from "./backend-names.js";
import { bundledFields, notCarried, ownFields } from "./balancing-fields.js";

/** Defaults of NGINX; the balancer has no others for backends. */
const MAX_FAILS = 1;
const FAIL_TIMEOUT = 10_000;
/** Kinds whose upstreams have names of their own; those of an Ingress are called by their service. */
const NAMED_BY_OBJECT = ["VirtualServer", "VirtualServerRoute"];

/** Whether this upstream stays the same where the object turns to another service. */
export function isNamedByObject(upstreamKey: string): boolean {
  return NAMED_BY_OBJECT.includes(upstreamKey.split("/")[0]);
}

/**
 * Name of the backend of an upstream with a name of its own. Another protocol towards the peers is another backend: a location
 * never meets peers of the wrong one.
 */
export function backendName(upstreamKey: string, transport: UpstreamTransport): string {
  const { tls, protocol } = transport;
  return `${backendLabel(upstreamKey)}-${digest(JSON.stringify([upstreamKey, tls, protocol]))}`;
}

/** What a backend of this upstream is called, for people. */
export function backendLabel(upstreamKey: string): string {
  const [, namespace = "", object = ""] = upstreamKey.split("/");
  return `${namespace}-${object}`.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 128);
}

/** Whether a backend of this name was posted by this carrier. */
export function isOwnName(name: string): boolean {
  return /^[A-Za-z0-9._-]{1,128}-[0-9a-f]{16}$/.test(name);
}

/** Throws UnsupportedError where an upstream asks for what the balancer's API has no field for, or what the balancer does not do. */
export function requireCarried(upstream: Upstream, balancer: BalancerName = "own"): void {
  backendOf("checked", upstream, () => undefined, balancer);
}

/**
 * The entry for an upstream; without one, and without peers, requests get 503. `stateOf`: what checks say of a peer.
 * Everything in it is checked: one wrong entry would keep the bundled balancer from all that follow.
 */
export function backendOf(
  name: string,
  upstream: Upstream | undefined,
  stateOf: (address: string, port: number) => PeerState | undefined,
  balancer: BalancerName = "own",
): Backend {
  if (upstream === undefined) return { name, endpoints: [], "load-balance": "round_robin" };
  const { peers, queue } = upstream;
  const { maxConns = 0, slowStart = 0, maxFails = MAX_FAILS, failTimeout = FAIL_TIMEOUT } = peers.limits ?? {};
  if (maxConns > 0 || queue !== undefined) throw notCarried("max-conns and queue");
  if (slowStart > 0) throw notCarried("slow-start");
  if (maxFails !== MAX_FAILS || failTimeout !== FAIL_TIMEOUT) throw notCarried("max-fails and fail-timeout");
  if (peers.peers.some(({ weight }) => weight !== 1)) throw notCarried("weights of peers");
  return {
    name,
    endpoints: usablePeers(upstream, stateOf),
    "load-balance": "round_robin",
    ...(balancer === "bundled" ? bundledFields(upstream) : ownFields(upstream)),
  };
}

/**
 * The peers that get requests, as the core picks them: those that are not down, draining ones only where nobody else is
 * left, and with `panic` all where all are down.
 */
function usablePeers(
  { peers: { peers, limits = {} } }: Upstream,
  stateOf: (address: string, port: number) => PeerState | undefined,
): Backend["endpoints"] {
  const known = peers.map((peer) => ({ ...peer, state: stateOf(peer.address, peer.port) ?? "unchecked" }));
  const alive = known.filter(({ state }) => state !== "down" && !(limits.mandatory && state === "unchecked"));
  const first = alive.filter(({ draining, state }) => !draining && state !== "draining");
  const allDown = known.every(({ state }) => state === "down");
  const usable = first.length > 0 ? first : alive.length > 0 ? alive : limits.panic && allDown ? known : [];
  return usable
    .map(({ address, port }) => ({ address, port: String(port) }))
    .sort((a, b) => (`${a.address} ${a.port}` < `${b.address} ${b.port}` ? -1 : 1));
}
