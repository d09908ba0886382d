/** How peers are chosen, as fields of a backend: for our balancer, and for the one that OpenNJet brings. */
import type { BalanceMethod, Template } from "../../../../core-wasm/binding/source.js";
import type { SessionCookie, Upstream, UpstreamTransport } from "../../../model/types.js";
import { UnsupportedError } from "../../plan-step.js";
import type { Backend, CookieAffinity } from "../api/backends-api.js";
import { quotedTemplate } from "./configuration-text.js";
import { variableOf } from "./values.js";

const TEN_YEARS = 315_360_000;
/** What the balancer takes (balancer/configuration/backend.lua): it refuses a whole post for one entry. */
const MOST_BYTES = 4096;
const COOKIE_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
const COOKIE_PATH = /^[\x20-\x2b\x2d-\x3a\x3c-\x7e]{0,4096}$/;
const COOKIE_DOMAIN = /^[A-Za-z0-9.-]{1,256}$/;
/**
 * What the bundled balancer hashes: the key that the location has set, by way of a map that puts something else in the place of an empty one; after
 * a failure also who has failed, since it would come back to the same peer. The text is the same for all backends: it does not
 * always see that another one was posted.
 */
const BUNDLED_HASH = "${njet_kic_peer_key}${upstream_addr}";
/** The bundled balancer gives cookies where `$server_name` and `$location_path` are listed. */
const EVERYWHERE: Record<string, string[]> = { _: ["/"] };
type Limited = Pick<Upstream, "peers" | "sessionCookie"> & {
  transport?: Pick<UpstreamTransport, "nextUpstream" | "nextUpstreamTries">;
};

/** It never connects to this port of the machine itself. */
const PROHIBITED = { address: /^127/, port: 10246 };

/** For our balancer. */
export function ownFields({ peers, sessionCookie }: Upstream): Partial<Backend> {
  const key = hashKey(peers.method);
  return {
    ...(key && { upstreamHashByConfig: { "upstream-hash-by": keyText(key) } }),
    ...(sessionCookie && { sessionAffinityConfig: affinity(sessionCookie) }),
  };
}

/**
 * For the bundled balancer. Throws UnsupportedError for what it takes and does not do, which it would not tell.
 */
export function bundledFields({ peers, sessionCookie }: Upstream): Partial<Backend> {
  const key = hashKey(peers.method);
  // It is set by locations; that this is possible is to be known here.
  if (key !== undefined) quotedTemplate(key);
  if (peers.peers.some(({ address, port }) => PROHIBITED.address.test(address) && port === PROHIBITED.port)) {
    throw notBundled("peers on port 10246 of 127.0.0.0/8");
  }
  if (sessionCookie?.domain !== undefined) throw notBundled("a session cookie with a domain");
  if (sessionCookie?.sameSite !== undefined) throw notBundled("a session cookie with samesite");
  const cookie = sessionCookie && affinity(sessionCookie);
  return {
    ...(key && { upstreamHashByConfig: { "upstream-hash-by": BUNDLED_HASH } }),
    ...(cookie && {
      sessionAffinityConfig: {
        ...cookie,
        cookieSessionAffinity: {
          ...(cookie.cookieSessionAffinity as CookieAffinity),
          change_on_failure: true,
          locations: EVERYWHERE,
        },
      },
    }),
  };
}

/**
 * What the bundled balancer does only in part of what an object asks for, for people; undefined where it does all of it. Which peer comes next
 * is the same for all requests of a worker, so that a retry may come back to the one that failed.
 */
export function bundledLimit({ peers, sessionCookie, transport = {} }: Limited): string | undefined {
  const { nextUpstream, nextUpstreamTries } = transport;
  const retries = nextUpstream?.length !== 0 && nextUpstreamTries !== 1;
  if (!retries || peers.peers.length < 2 || sessionCookie !== undefined) return undefined;
  const asked = peers.method.kind !== "round-robin" || nextUpstream !== undefined || nextUpstreamTries !== undefined;
  return asked ? "a retry may try the failed peer again; with --balancer own it tries each peer once" : undefined;
}

/** The key of a method that has one; undefined for round robin. The balancer has one ring for all, whose promise is that a key keeps its peer. */
export function hashKey(method: BalanceMethod): Template | undefined {
  if (method.kind === "round-robin") return undefined;
  if (!("key" in method)) throw notCarried("every lb-method but round_robin and those with a key");
  if (method.bounded) throw notCarried("bounded load");
  return method.key;
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

export function notCarried(what: string): UnsupportedError {
  return new UnsupportedError(`the carrier locations does not have ${what}; use the carrier core`);
}

function notBundled(what: string): UnsupportedError {
  return new UnsupportedError(`the balancer that OpenNJet brings does not have ${what}; use --balancer own`);
}
