import type { UpstreamTransport } from "../model/types.js";
import { readBalancing } from "./balancing.js";
import type { Field } from "./field.js";
import type { UpstreamDeclaration } from "./fragments.js";
import { readPort, readServiceName, readServiceReference, readUpstreamName } from "./names.js";
import { type ObjectRef, refText } from "./object-ref.js";
import { quote } from "./problem.js";
import { crossReference } from "./reference.js";
import type { Shape } from "./shape.js";
import { readDuration, readSize } from "./units.js";

const FIELDS = [
  "name",
  "service",
  "port",
  "subselector",
  "lb-method",
  "fail-timeout",
  "max-fails",
  "max-conns",
  "keepalive",
  "connect-timeout",
  "read-timeout",
  "send-timeout",
  "next-upstream",
  "next-upstream-timeout",
  "next-upstream-tries",
  "buffering",
  "client-max-body-size",
  "tls",
  "healthCheck",
  "slow-start",
  "queue",
  "sessionCookie",
  "use-cluster-ip",
  "type",
  "backup",
  "backupPort",
];

const RETRY_CONDITIONS = ["error", "timeout", "http_502", "http_503", "http_504", "non_idempotent"] as const;
/** Conditions of proxy_next_upstream that are understood but do not act yet. */
const LATER_RETRY_CONDITIONS = ["invalid_header", "http_500", "http_403", "http_404", "http_429"];

const MAX_UPSTREAMS = 1000;
const UPSTREAMS: Shape = { key: "name" };
const RETRY_WORD = `(${[...RETRY_CONDITIONS, ...LATER_RETRY_CONDITIONS].join("|")})`;
const NEXT_UPSTREAM: Shape = { patterns: [new RegExp(`^ *(off|${RETRY_WORD}( +${RETRY_WORD})*) *$`)] };
const BACKUP_WITH_PORT = "backup and backupPort are given together or not at all";
const UPSTREAM: Shape = { rules: [{ cel: "has(self.backup) == has(self.backupPort)", message: BACKUP_WITH_PORT }] };

/** Reads `spec.upstreams`. Names must be unique; the key of the map is the name. */
export function readUpstreams(list: Field, ref: ObjectRef): Map<string, UpstreamDeclaration> {
  const upstreams = new Map<string, UpstreamDeclaration>();
  for (const item of list.shaped(UPSTREAMS).items(MAX_UPSTREAMS)) {
    if (!item.shaped(UPSTREAM).isRequiredMap()) continue;
    const name = readUpstreamName(item.get("name"));
    const upstream = readUpstream(item, `${refText(ref)}/${name}`, ref);
    if (name === undefined || upstream === undefined) continue;
    if (upstreams.has(name)) item.get("name").error("DUPLICATE_NAME", `there is another upstream ${quote(name)}`);
    upstreams.set(name, upstream);
  }
  return upstreams;
}

function readUpstream(item: Field, key: string, ref: ObjectRef): UpstreamDeclaration | undefined {
  item.warnUnknown(FIELDS);
  const target = readServiceReference(item.get("service"), ref.namespace);
  const portField = item.get("port");
  const port = portField.required() ? readPort(portField) : undefined;
  const transport = readTransport(item);
  const balancing = readBalancing(item, transport);
  checkInactiveFields(item);
  if (target === undefined || port === undefined) return undefined;
  const service = `${target.namespace}/${target.name}`;
  const reference = crossReference(ref, { kind: "Service", ...target });
  const path = item.get("service").path;
  const display = `${service}:${port}`;
  return { key, display, service, ...(reference && { reference }), port, balancing, transport, path };
}

function readTransport(item: Field): UpstreamTransport {
  const transport: UpstreamTransport = {
    tls: readTlsEnable(item.get("tls")),
    protocol: item.get("type").choice(["http", "grpc"]) ?? "http",
    connectTimeout: readDuration(item.get("connect-timeout"), 1),
    readTimeout: readDuration(item.get("read-timeout"), 1),
    sendTimeout: readDuration(item.get("send-timeout"), 1),
    nextUpstream: readRetryConditions(item.get("next-upstream")),
    nextUpstreamTimeout: readDuration(item.get("next-upstream-timeout")),
    nextUpstreamTries: item.get("next-upstream-tries").integer(0, 1000),
    clientMaxBodySize: readSize(item.get("client-max-body-size")),
    buffering: item.get("buffering").boolean(),
    keepalive: item.get("keepalive").integer(0, 100_000),
  };
  return Object.fromEntries(Object.entries(transport).filter(([, value]) => value !== undefined)) as typeof transport;
}

function readTlsEnable(field: Field): boolean {
  field.isMap();
  field.warnUnknown(["enable"]);
  return field.get("enable").boolean() ?? false;
}

/** `next-upstream`: words of proxy_next_upstream, or `off`. */
function readRetryConditions(field: Field): UpstreamTransport["nextUpstream"] {
  const text = field.shaped(NEXT_UPSTREAM).line();
  if (text === undefined) return undefined;
  const words = text.split(" ").filter((word) => word !== "");
  if (words.length === 1 && words[0] === "off") return [];
  const conditions = RETRY_CONDITIONS.filter((condition) => words.includes(condition));
  const others = words.filter((word) => !RETRY_CONDITIONS.some((condition) => condition === word));
  const unknown = others.filter((word) => !LATER_RETRY_CONDITIONS.includes(word));
  if (unknown.length > 0) {
    const known = [...RETRY_CONDITIONS, ...LATER_RETRY_CONDITIONS, "off"].join(", ");
    field.error("ENUM_INVALID", `${quote(unknown.join(" "))} is none of ${known}`);
  } else if (others.length > 0) {
    field.warning("NOT_YET_ACTIVE", `${others.join(", ")} do not act in this version`);
  }
  return conditions;
}

function checkInactiveFields(item: Field): void {
  if (item.get("type").value === "grpc") item.get("type").warnInactive();
  for (const [, value] of item.get("subselector").entries()) value.text();
  item.get("use-cluster-ip").boolean();
  if (item.get("backup").present) readServiceName(item.get("backup"));
  readPort(item.get("backupPort"));
  if (item.get("backup").present !== item.get("backupPort").present) {
    item.get("backup").error("FIELD_CONFLICT", BACKUP_WITH_PORT);
  }
  const names = ["subselector", "keepalive", "buffering", "use-cluster-ip", "backup"];
  for (const name of names) item.get(name).warnInactive();
}
