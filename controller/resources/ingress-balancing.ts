import type { HealthCheck } from "../model/types.js";
import { type AnnotationParser, type Annotations, parseFlag, parseNumber, readAnnotation } from "./annotations.js";
import {
  type BalancingSettings,
  combineBalancing,
  QUEUE_TIMEOUT,
  readMaxConns,
  readMaxFails,
  readQueueSize,
} from "./balancing.js";
import type { Balancing } from "./fragments.js";
import {
  type ActiveCheck,
  concernsType,
  fillHealthCheck,
  readProbePath,
  readStatusMatch,
  readStreak,
} from "./health-check.js";
import { ROUND_ROBIN, readBalanceMethod } from "./lb-method.js";
import { readPort } from "./names.js";
import { readDuration } from "./units.js";

/** The annotations of each setting: our name, which goes first, and the alias of the NGINX family. */
const NAMES = {
  method: ["njet.org/lb-method", "nginx.org/lb-method"],
  maxFails: ["njet.org/max-fails", "nginx.org/max-fails"],
  failTimeout: ["njet.org/fail-timeout", "nginx.org/fail-timeout"],
  maxConns: ["njet.org/max-conns", "nginx.org/max-conns"],
  slowStart: ["njet.org/slow-start", "nginx.com/slow-start"],
  checks: ["njet.org/health-checks", "nginx.com/health-checks"],
  mandatory: ["njet.org/health-checks-mandatory", "nginx.com/health-checks-mandatory"],
  queue: ["njet.org/health-checks-mandatory-queue", "nginx.com/health-checks-mandatory-queue"],
} as const satisfies Record<string, readonly string[]>;

/** Annotations that describe the check; they have no alias. */
const CHECK_NAMES = {
  path: "njet.org/health-check-path",
  port: "njet.org/health-check-port",
  interval: "njet.org/health-check-interval",
  fails: "njet.org/health-check-fails",
  passes: "njet.org/health-check-passes",
  type: "njet.org/health-check-type",
  statusMatch: "njet.org/health-check-status-match",
  panic: "njet.org/health-check-panic",
} as const;

const CHECK_TYPES = ["http", "grpc", "tcp"] as const satisfies readonly HealthCheck["type"][];

/** Every annotation that is read here. */
export const BALANCING_ANNOTATIONS: readonly string[] = [...Object.values(NAMES).flat(), ...Object.values(CHECK_NAMES)];

/**
 * How the upstreams of an Ingress spread their requests, by its annotations; they hold for all of its upstreams. An
 * annotation with a wrong value, or without effect, is a warning, and the rest holds.
 */
export function readIngressBalancing(annotations: Annotations): Balancing {
  const read = <T>(setting: keyof typeof NAMES, parse: AnnotationParser<T>) =>
    readAnnotation(annotations, NAMES[setting], parse);
  const active = readActiveCheck(annotations);
  const settings: BalancingSettings = {
    method: read("method", readBalanceMethod) ?? ROUND_ROBIN,
    maxFails: read("maxFails", parseNumber(readMaxFails)),
    failTimeout: read("failTimeout", readDuration),
    maxConns: read("maxConns", parseNumber(readMaxConns)),
    slowStart: read("slowStart", readDuration),
    active,
    queue: active?.mandatory ? readQueue(annotations) : undefined,
  };
  return combineBalancing(settings, (setting, reason) => warnNoEffect(annotations, NAMES[setting], reason));
}

/** `health-checks`, off by default, and what describes the check. */
function readActiveCheck(annotations: Annotations): ActiveCheck | undefined {
  const enabled = readAnnotation(annotations, NAMES.checks, parseFlag);
  const mandatory = readAnnotation(annotations, NAMES.mandatory, parseFlag) ?? false;
  const described = readDescription(annotations);
  if (!enabled) {
    // Where checks are switched off on purpose, the rest may stand ready for the day they are switched on.
    if (enabled === undefined) warnWithoutChecks(annotations);
    return undefined;
  }
  if (!mandatory) warnNoEffect(annotations, NAMES.queue, `has no effect without ${NAMES.mandatory[0]}: "true"`);
  return { ...described, mandatory };
}

function readDescription(annotations: Annotations): Omit<ActiveCheck, "mandatory"> {
  const read = <T>(setting: keyof typeof CHECK_NAMES, parse: AnnotationParser<T>) =>
    readAnnotation(annotations, [CHECK_NAMES[setting]], parse);
  const type = read("type", (field) => field.choice(CHECK_TYPES)) ?? "http";
  const given: Partial<HealthCheck> = {
    path: read("path", readProbePath),
    port: read("port", parseNumber(readPort)),
    interval: read("interval", (field) => readDuration(field, 1)),
    fails: read("fails", parseNumber(readStreak)),
    passes: read("passes", parseNumber(readStreak)),
    statusMatch: read("statusMatch", readStatusMatch),
  };
  for (const setting of ["path", "statusMatch"] as const) {
    if (concernsType(setting, type)) continue;
    warnNoEffect(annotations, [CHECK_NAMES[setting]], `has no effect: a check of type ${type} does not look at this`);
  }
  return { check: fillHealthCheck(type, given), panic: read("panic", parseFlag) ?? false };
}

/** Requests wait for a peer that takes them; NGINX's default of the timeout. */
function readQueue(annotations: Annotations): BalancingSettings["queue"] {
  const size = readAnnotation(annotations, NAMES.queue, parseNumber(readQueueSize));
  return size === undefined ? undefined : { size, timeout: QUEUE_TIMEOUT };
}

function warnWithoutChecks(annotations: Annotations): void {
  const reason = `has no effect without ${NAMES.checks[0]}: "true"`;
  warnNoEffect(annotations, [...NAMES.mandatory, ...NAMES.queue, ...Object.values(CHECK_NAMES)], reason);
}

function warnNoEffect(annotations: Annotations, names: readonly string[], reason: string): void {
  for (const name of names) {
    const field = annotations.get(name);
    if (field?.present) field.warning("ANNOTATION_NO_EFFECT", reason);
  }
}
