/** Upstreams as entries of `/configuration/backends`. */
import type { BalanceMethod, PeerState, Template } from "../../../../core-wasm/binding/source.js";
import type { SessionCookie, Upstream, UpstreamTransport } from "../../../model/types.js";
import { UnsupportedError } from "../../plan-step.js";
import type { Backend, CookieAffinity } from "../api/backends-api.js";
import { digest } from "./backend-names.js";
import { variableOf } from "./values.js";

/** Defaults of NGINX; the balancer has no others for backends. */
const MAX_FAILS = 1;
const FAIL_TIMEOUT = 10_000;
const TEN_YEARS = 315_360_000;
/** What the balancer takes (balancer/configuration/backend.lua): it refuses a whole post for one entry. */
const MOST_BYTES = 4096;
const COOKIE_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
const COOKIE_PATH = /^[\x20-\x2b\x2d-\x3a\x3c-\x7e]{0,4096}$/;
const COOKIE_DOMAIN = /^[A-Za-z0-9.-]{1,256}$/;
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

/** Throws UnsupportedError where an upstream asks for what the balancer's API has no field for. */
export function requireCarried(upstream: Upstream): void {
  backendOf("checked", upstream, () => undefined);
}

/**
 * The entry for an upstream; without one, and without peers, requests get 503. `stateOf`: what checks say of a peer.
 * Everything in it is checked: one wrong entry would keep the bundled balancer from all that follow.
 */
export function backendOf(
  name: string,
  upstream: Upstream | undefined,
  stateOf: (address: string, port: number) => PeerState | undefined,
): Backend {
  if (upstream === undefined) return { name, endpoints: [], "load-balance": "round_robin" };
  const { peers, sessionCookie, queue } = upstream;
  const { maxConns = 0, slowStart = 0, maxFails = MAX_FAILS, failTimeout = FAIL_TIMEOUT } = peers.limits ?? {};
  if (maxConns > 0 || queue !== undefined) throw notCarried("max-conns and queue");
  if (slowStart > 0) throw notCarried("slow-start");
  if (maxFails !== MAX_FAILS || failTimeout !== FAIL_TIMEOUT) throw notCarried("max-fails and fail-timeout");
  if (peers.peers.some(({ weight }) => weight !== 1)) throw notCarried("weights of peers");
  return {
    name,
    endpoints: usablePeers(upstream, stateOf),
    "load-balance": "round_robin",
    ...hashField(peers.method),
    ...(sessionCookie && { sessionAffinityConfig: affinity(sessionCookie) }),
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

/** The balancer has one ring for all methods with a key, whose promise is that a key keeps its peer. The key is text with variables. */
function hashField(method: BalanceMethod): Partial<Backend> {
  if (method.kind === "round-robin") return {};
  if (!("key" in method)) throw notCarried("every lb-method but round_robin and those with a key");
  if (method.bounded) throw notCarried("bounded load");
  return { upstreamHashByConfig: { "upstream-hash-by": keyText(method.key) } };
}

function keyText(key: Template): string {
  const text = key
    .map((part) => {
      if (typeof part === "string") {
        if (/[$\x00-\x1f\x7f]/.test(part)) throw notCarried("such characters in the key of a hash");
        return part;
      }
      const name = part.kind === "group" ? undefined : variableOf(part);
      if (name === undefined) throw notCarried("a value in the key of a hash whose name stands in no variable");
      return `\${${name}}`;
    })
    .join("");
  if (Buffer.byteLength(text) > MOST_BYTES) throw notCarried(`a hash key of more than ${MOST_BYTES} bytes`);
  return text;
}

/** Cookies of the balancer are always HttpOnly. */
function affinity(cookie: SessionCookie): NonNullable<Backend["sessionAffinityConfig"]> {
  const { name, path = "/", domain = "a" } = cookie;
  if (!COOKIE_NAME.test(name) || !COOKIE_PATH.test(path) || !COOKIE_DOMAIN.test(domain)) {
    throw notCarried("such a name, path or domain of a session cookie");
  }
  if (!cookie.httpOnly) throw notCarried("a session cookie without httpOnly");
  const seconds = cookie.expires === "max" ? TEN_YEARS : Math.ceil((cookie.expires ?? 0) / 1000);
  const cookieSessionAffinity: CookieAffinity = {
    name: cookie.name,
    secure: cookie.secure,
    path: cookie.path ?? "/",
    ...(seconds > 0 && { expires: String(seconds), maxage: String(seconds) }),
    ...(cookie.domain !== undefined && { domain: cookie.domain }),
    ...(cookie.sameSite !== undefined && { samesite: cookie.sameSite }),
  };
  return { name: "cookie", mode: "persistent", cookieSessionAffinity };
}

function notCarried(what: string): UnsupportedError {
  return new UnsupportedError(`the carrier locations does not have ${what}; use the carrier core`);
}
