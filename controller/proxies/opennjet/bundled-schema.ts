/** What the bundled balancer can read of a post without harm: it checks nothing by itself. */
import { isIP } from "node:net";
import type { Backend, CookieAffinity } from "./api/index.js";

type Check = (value: unknown) => boolean;

const NAME = /^[A-Za-z0-9._-]{1,256}$/;
/** Text with variables; it drops backslashes. */
const KEY = /^[^\\\x00-\x1f\x7f]{1,4096}$/;
const COOKIE_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
const COOKIE_PATH = /^[\x20-\x2b\x2d-\x3a\x3c-\x7e]{1,4096}$/;
const SECONDS = /^\d{1,10}$/;

const matching =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value);
const oneOf =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value);
const boolean = oneOf(true, false);
const paths: Check = (value) => Array.isArray(value) && value.every((path) => typeof path === "string");
const byHost: Check = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(paths);

const ENDPOINT: Record<string, Check> = {
  address: (value) => typeof value === "string" && isIP(value) !== 0 && !value.includes("%"),
  port: (value) => typeof value === "string" && /^[1-9]\d{0,4}$/.test(value) && Number(value) <= 65_535,
};
/** No `samesite` and no `domain`: it takes them, and does nothing. */
const COOKIE: Record<keyof CookieAffinity & string, Check | undefined> = {
  name: matching(COOKIE_NAME),
  path: matching(COOKIE_PATH),
  expires: matching(SECONDS),
  maxage: matching(SECONDS),
  secure: boolean,
  change_on_failure: boolean,
  locations: byHost,
  samesite: undefined,
  domain: undefined,
  conditional_samesite_none: undefined,
};
/** Nothing of canaries and external names: in some forms each request is a 500, or a worker asks a resolver. */
const BACKEND: Record<string, Check> = {
  name: matching(NAME),
  endpoints: (value) =>
    Array.isArray(value) && value.every((one) => fault(one, ENDPOINT, ["address", "port"]) === undefined),
  "load-balance": oneOf("round_robin"),
  upstreamHashByConfig: (value) =>
    fault(value, { "upstream-hash-by": matching(KEY) }, ["upstream-hash-by"]) === undefined,
  sessionAffinityConfig: (value) =>
    fault(
      value,
      {
        name: oneOf("cookie"),
        mode: oneOf("persistent", "balanced"),
        cookieSessionAffinity: (cookie) => fault(cookie, COOKIE, ["name", "path"]) === undefined,
      },
      ["name", "mode", "cookieSessionAffinity"],
    ) === undefined,
};

/** Why nothing of it may be sent; undefined where it may. */
export function checkBackends(backends: readonly Backend[]): string | undefined {
  if (!Array.isArray(backends)) return "what is posted must be an array";
  const names = new Set<string>();
  for (const [i, backend] of backends.entries()) {
    const wrong = fault(backend, BACKEND, ["name", "endpoints"]);
    if (wrong !== undefined) return `entry ${i}: ${wrong}`;
    if (names.has(backend.name)) return `entry ${i}: the name ${backend.name} is given twice`;
    names.add(backend.name);
  }
  return undefined;
}

function fault(
  value: unknown,
  known: Record<string, Check | undefined>,
  needed: readonly string[],
): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "it is no object";
  for (const field of needed) if (!Object.hasOwn(value, field)) return `${field} is missing`;
  for (const [field, content] of Object.entries(value)) {
    const check = Object.hasOwn(known, field) ? known[field] : undefined;
    if (check === undefined) return `a field that it can't have: ${JSON.stringify(field).slice(0, 80)}`;
    if (!check(content)) return `${field} is not of the form that it reads`;
  }
  return undefined;
}
