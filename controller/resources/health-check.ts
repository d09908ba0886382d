import type { HealthCheck, UpstreamTransport } from "../model/types.js";
import type { Field } from "./field.js";
import { HEADER_NAME, readHeaderName } from "./header-name.js";
import { readPort } from "./names.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";
import { readDuration } from "./units.js";

const FIELDS = [
  "enable",
  "path",
  "interval",
  "jitter",
  "fails",
  "passes",
  "port",
  "tls",
  "connect-timeout",
  "read-timeout",
  "send-timeout",
  "headers",
  "statusMatch",
  "grpcStatus",
  "grpcService",
  "mandatory",
  "persistent",
  "keepalive-time",
  "type",
  "panic",
];

/** Fields that only some types of check look at. */
const FIELDS_OF_TYPE: Record<HealthCheck["type"], readonly string[]> = {
  http: ["path", "headers", "statusMatch", "keepalive-time"],
  grpc: ["headers", "grpcStatus", "grpcService", "keepalive-time"],
  tcp: [],
};

const STATUS_RANGE = "[1-5]\\d\\d(-[1-5]\\d\\d)?";
const MAX_HEADERS = 32;

const PROBE_PATH: Shape = { patterns: [/^\/[\x21-\x7e]*$/] };
const STATUS_MATCH: Shape = { patterns: [new RegExp(`^!? *${STATUS_RANGE}( +${STATUS_RANGE})* *$`)] };
const PROBE_HEADER_NAME: Shape = { ...HEADER_NAME, not: [...(HEADER_NAME.not ?? []), /^expect$/i] };
const PROBE_HEADER_VALUE: Shape = { patterns: [/^[\x20-\x7e]*$/] };
const ONE_HOST = "a request has one Host; servers refuse a second one";
const PROBE_HEADERS: Shape = {
  rules: [{ cel: "self.filter(header, header.name.lowerAscii() == 'host').size() <= 1", message: ONE_HOST }],
};
const NEEDS_MANDATORY = "needs mandatory: true";
const HEALTH_CHECK: Shape = {
  rules: [
    {
      cel: "!has(self.persistent) || !self.persistent || has(self.mandatory) && self.mandatory",
      message: `persistent ${NEEDS_MANDATORY}`,
    },
  ],
};

/** A check, and what it means for the choice of a peer. */
export interface ActiveCheck {
  check: HealthCheck;
  /** No traffic before the first pass. */
  mandatory: boolean;
  /** All peers are used where every one is down. */
  panic: boolean;
}

type StatusMatch = NonNullable<HealthCheck["statusMatch"]>;

/** NGINX's defaults: those of health_check and of the proxy's timeouts. */
export const HEALTH_CHECK_DEFAULTS: HealthCheck = {
  type: "http",
  tls: false,
  path: "/",
  headers: [],
  interval: 5000,
  jitter: 0,
  fails: 1,
  passes: 1,
  connectTimeout: 60_000,
  readTimeout: 60_000,
  sendTimeout: 60_000,
  grpcService: "",
  persistent: false,
};

/**
 * `healthCheck` of an upstream (NGINX health_check directive). Undefined unless it is switched on. TLS and timeouts that
 * it leaves open are those of the upstream, since probes take the way of its requests.
 */
export function readHealthCheck(field: Field, upstream: UpstreamTransport): ActiveCheck | undefined {
  if (!field.shaped(HEALTH_CHECK).isMap()) return undefined;
  field.warnUnknown(FIELDS);
  const enabled = field.isEnabled();
  const type = readType(field.get("type"), upstream.protocol);
  warnOtherTypes(field, type);
  const mandatory = field.get("mandatory").boolean() ?? false;
  const persistent = field.get("persistent").boolean() ?? false;
  if (persistent && !mandatory) field.get("persistent").error("FIELD_CONFLICT", NEEDS_MANDATORY);
  const panic = field.get("panic").boolean() ?? false;
  const given: Partial<HealthCheck> = {
    tls: readTls(field.get("tls")) ?? upstream.tls,
    path: readProbePath(field.get("path")),
    port: readPort(field.get("port")),
    headers: readHeaders(field.get("headers")),
    interval: readDuration(field.get("interval"), 1),
    jitter: readDuration(field.get("jitter")),
    fails: readStreak(field.get("fails")),
    passes: readStreak(field.get("passes")),
    connectTimeout: readDuration(field.get("connect-timeout"), 1) ?? upstream.connectTimeout,
    readTimeout: readDuration(field.get("read-timeout"), 1) ?? upstream.readTimeout,
    sendTimeout: readDuration(field.get("send-timeout"), 1) ?? upstream.sendTimeout,
    keepaliveTime: readDuration(field.get("keepalive-time"), 1),
    statusMatch: readStatusMatch(field.get("statusMatch")),
    grpcStatus: field.get("grpcStatus").integer(0, 16),
    grpcService: field.get("grpcService").line(),
    persistent,
  };
  return enabled ? { check: fillHealthCheck(type, given), mandatory, panic } : undefined;
}

/** A check of `type` with the default of each setting that is not given. */
export function fillHealthCheck(type: HealthCheck["type"], given: Partial<HealthCheck>): HealthCheck {
  const known = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...HEALTH_CHECK_DEFAULTS, ...Object.fromEntries(known), type };
}

/** Whether a check of `type` looks at the setting, named as in `healthCheck`. */
export function concernsType(setting: string, type: HealthCheck["type"]): boolean {
  const ofSomeType = Object.values(FIELDS_OF_TYPE).some((names) => names.includes(setting));
  return !ofSomeType || FIELDS_OF_TYPE[type].includes(setting);
}

/** How often in a row a peer must pass or fail. */
export function readStreak(field: Field): number | undefined {
  return field.integer(1, 1000);
}

/** Path and query of a probe. Reports PATH_INVALID. */
export function readProbePath(field: Field): string | undefined {
  const path = field.shaped(PROBE_PATH).line();
  if (path === undefined || hasShape(path, PROBE_PATH)) return path;
  field.error("PATH_INVALID", `${quote(path)} must start with / and hold neither spaces nor anything outside of ASCII`);
  return undefined;
}

/** Codes and ranges from 100 to 599, with a leading `!` for none of them. Reports STATUS_INVALID. */
export function readStatusMatch(field: Field): StatusMatch | undefined {
  const text = field.shaped(STATUS_MATCH).line();
  const match = text === undefined ? undefined : parseStatusMatch(text);
  if (text !== undefined && match === undefined) {
    field.error("STATUS_INVALID", `${quote(text)} is none of the forms "200", "! 500", "200-399", "301 302 307"`);
  }
  return match;
}

/** Undefined if the text is no status match. */
export function parseStatusMatch(text: string): StatusMatch | undefined {
  if (!hasShape(text, STATUS_MATCH)) return undefined;
  const ranges = [...text.matchAll(/(\d+)(?:-(\d+))?/g)].map(([, from, to]) => {
    return { from: Number(from), to: Number(to ?? from) };
  });
  return ranges.some(({ from, to }) => from > to) ? undefined : { negated: text.startsWith("!"), ranges };
}

/** The peers of a gRPC upstream are asked by gRPC, unless a connection alone is to be enough. */
function readType(field: Field, protocol: UpstreamTransport["protocol"]): HealthCheck["type"] {
  const type = field.choice(["http", "tcp"]);
  if (protocol !== "grpc" || type === "tcp") return type ?? "http";
  if (type === "http") {
    field.warning("FIELD_NO_EFFECT", "the upstream is of type grpc and is asked by gRPC; remove this, or use tcp");
  }
  return "grpc";
}

function warnOtherTypes(field: Field, type: HealthCheck["type"]): void {
  for (const name of FIELDS) {
    if (!field.get(name).present || concernsType(name, type)) continue;
    field.get(name).warning("FIELD_NO_EFFECT", `a check of type ${type} does not look at this; remove it`);
  }
}

function readTls(field: Field): boolean | undefined {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["enable"]);
  return field.get("enable").boolean();
}

/**
 * Headers that a probe can send as they are: one that cannot be sent, or that a peer refuses, would take every peer down.
 */
function readHeaders(list: Field): HealthCheck["headers"] {
  const headers: HealthCheck["headers"] = [];
  let host = false;
  for (const item of list.shaped(PROBE_HEADERS).items(MAX_HEADERS)) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["name", "value"]);
    const name = readHeaderName(item.get("name").shaped(PROBE_HEADER_NAME));
    const field = item.get("value").shaped(PROBE_HEADER_VALUE);
    const value = field.required() ? field.text() : undefined;
    if (value !== undefined && !hasShape(value, PROBE_HEADER_VALUE)) {
      field.error("HEADER_INVALID", `${quote(value)} holds characters other than printable ASCII`);
    }
    if (name?.toLowerCase() === "expect") {
      item.get("name").error("HEADER_INVALID", `${name} is about a body, and a probe has none`);
    }
    if (name?.toLowerCase() === "host") {
      if (host) item.get("name").error("HEADER_INVALID", ONE_HOST);
      host = true;
    }
    if (name !== undefined && value !== undefined) headers.push({ name, value });
  }
  return headers;
}
