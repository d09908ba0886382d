import type { BalanceMethod, PeerSetLimits } from "../../core-wasm/binding/source.js";
import type { SessionCookie, UpstreamTransport } from "../model/types.js";
import type { Field } from "./field.js";
import type { Balancing } from "./fragments.js";
import { type ActiveCheck, readHealthCheck } from "./health-check.js";
import { readBalanceMethod } from "./lb-method.js";
import { readSessionCookie } from "./session-cookie.js";
import { readDuration } from "./units.js";

/** NGINX's defaults of max_fails and fail_timeout. */
const MAX_FAILS = 1;
const FAIL_TIMEOUT = 10_000;
/** NGINX's default of the timeout of `queue`. */
export const QUEUE_TIMEOUT = 60_000;
/** Methods that take no notice of weights that rise: NGINX does not allow slow_start with them. */
const WITHOUT_SLOW_START: readonly BalanceMethod["kind"][] = [
  "ring",
  "nginx-ring",
  "maglev",
  "ip-hash",
  "random",
  "random-two",
];

/** What an object says about balancing; undefined where it says nothing. Times in milliseconds. */
export interface BalancingSettings {
  method: BalanceMethod;
  maxFails?: number;
  failTimeout?: number;
  maxConns?: number;
  slowStart?: number;
  active?: ActiveCheck;
  sessionCookie?: SessionCookie;
  queue?: { size: number; timeout: number };
}

/** Told of settings that have no effect beside the others, and why. */
export type ReportNoEffect = (setting: "failTimeout" | "slowStart" | "queue", reason: string) => void;

/** Names of the settings in `spec.upstreams[]`. */
const FIELD_NAMES = { failTimeout: "fail-timeout", slowStart: "slow-start", queue: "queue" } as const;

/** Reads the fields of an upstream that say how its requests are spread over its peers. */
export function readBalancing(upstream: Field, transport: UpstreamTransport): Balancing {
  const settings: BalancingSettings = {
    method: readBalanceMethod(upstream.get("lb-method")),
    maxFails: readMaxFails(upstream.get("max-fails")),
    failTimeout: readDuration(upstream.get("fail-timeout")),
    maxConns: readMaxConns(upstream.get("max-conns")),
    slowStart: readDuration(upstream.get("slow-start")),
    active: readHealthCheck(upstream.get("healthCheck"), transport),
    sessionCookie: readSessionCookie(upstream.get("sessionCookie")),
    queue: readQueue(upstream.get("queue")),
  };
  return combineBalancing(settings, (setting, reason) => {
    upstream.get(FIELD_NAMES[setting]).warning("FIELD_NO_EFFECT", reason);
  });
}

/** Fills in NGINX's defaults and leaves out what has no effect. Equal settings give equal results, field by field. */
export function combineBalancing(settings: BalancingSettings, noEffect: ReportNoEffect): Balancing {
  const { method, maxConns = 0, active, sessionCookie } = settings;
  const maxFails = settings.maxFails ?? MAX_FAILS;
  if (maxFails === 0 && settings.failTimeout !== undefined) {
    noEffect("failTimeout", "has no effect, because max-fails is 0: no failure takes a peer out");
  }
  let slowStart = settings.slowStart ?? 0;
  if (slowStart > 0 && WITHOUT_SLOW_START.includes(method.kind)) {
    noEffect(
      "slowStart",
      "has no effect with this lb-method, as in NGINX; use round_robin or least_conn, or remove it",
    );
    slowStart = 0;
  }
  let { queue } = settings;
  if (queue !== undefined && maxConns === 0) {
    noEffect("queue", "has no effect without max-conns, which says when a peer takes no more; set max-conns");
    queue = undefined;
  }
  const limits: PeerSetLimits = {
    maxFails,
    failTimeout: settings.failTimeout ?? FAIL_TIMEOUT,
    ...(maxConns > 0 && { maxConns }),
    ...(slowStart > 0 && { slowStart }),
    ...(active?.mandatory && { mandatory: true }),
    ...(active?.panic && { panic: true }),
  };
  return {
    method,
    limits,
    ...(active && { healthCheck: active.check }),
    ...(sessionCookie && { sessionCookie }),
    ...(queue && { queue }),
  };
}

/** Failures that take a peer out; 0: never. */
export function readMaxFails(field: Field): number | undefined {
  return field.integer(0, 1_000_000);
}

/** Requests under way that a peer may have; 0: any number. */
export function readMaxConns(field: Field): number | undefined {
  return field.integer(0, 1_000_000);
}

/** Requests that may wait. */
export function readQueueSize(field: Field): number | undefined {
  return field.integer(1, 1_000_000);
}

function readQueue(field: Field): BalancingSettings["queue"] {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["size", "timeout"]);
  const sizeField = field.get("size");
  const size = sizeField.required() ? readQueueSize(sizeField) : undefined;
  const timeout = readDuration(field.get("timeout"), 1) ?? QUEUE_TIMEOUT;
  return size === undefined ? undefined : { size, timeout };
}
