import type { ErrorClass, ErrorKinds } from "./answer.js";
import { type ControlServer, segment } from "./control-server.js";
import {
  AlreadyExistsError,
  JsonRefusedError,
  NotFoundError,
  ParameterError,
  RequestRefusedError,
  ServerFailureError,
} from "./errors.js";
import { PATHS } from "./paths.js";
import { list, map, number, object, optional, text } from "./shape.js";
import type { Call, Method } from "./transport.js";

export type HealthCheckType = "http" | "stcp" | "sudp" | "smysql";

/** A check of the members of an upstream. Durations are texts of NGINX: `5s`. */
export interface HealthCheck {
  interval: string;
  jitter: string;
  timeout: string;
  /** Probes in a row after which a member is healthy, or unhealthy. */
  passes: number;
  fails: number;
  /** Instead of that of the member. */
  port?: number;
  http?: { uri: string; status?: string; header?: string[]; body?: string };
  stream?: { send?: string; expect?: string };
}

export interface HealthCheckName {
  type: string;
  upstream: string;
}

/** `njt_http_health_check_helper.c` has codes of its own; only 0, 8 and 12 mean what they mean elsewhere. */
const KINDS: ErrorKinds = new Map<number, ErrorClass>([
  [1, ParameterError],
  [2, NotFoundError],
  [3, RequestRefusedError],
  [4, ParameterError],
  [5, ParameterError],
  [6, ParameterError],
  [7, ServerFailureError],
  [8, AlreadyExistsError],
  [9, JsonRefusedError],
  [10, NotFoundError],
  [11, RequestRefusedError],
  [12, NotFoundError],
  [13, ParameterError],
  [14, ParameterError],
  [15, ParameterError],
  [16, ParameterError],
]);

const NAMES = list(
  map(
    object({ hc_type: text, upstream_name: text }),
    ({ hc_type, upstream_name }): HealthCheckName => ({
      type: hc_type,
      upstream: upstream_name,
    }),
  ),
);

const CHECK = object<HealthCheck>({
  interval: text,
  jitter: text,
  timeout: text,
  passes: number,
  fails: number,
  port: optional(number),
  http: optional(
    object<NonNullable<HealthCheck["http"]>>({
      uri: text,
      status: optional(text),
      header: optional(list(text)),
      body: optional(text),
    }),
  ),
  stream: optional(object<NonNullable<HealthCheck["stream"]>>({ send: optional(text), expect: optional(text) })),
});

/** `/v1/hc`: checks that OpenNJet makes itself. There is no change of a check, only removing and adding it. */
export class HealthChecks {
  constructor(private readonly control: ControlServer) {}

  list(): Promise<HealthCheckName[]> {
    return this.control.read({ method: "GET", path: PATHS.healthCheck }, NAMES, { kinds: KINDS });
  }

  /** Throws NotFoundError if there is none. */
  get(type: HealthCheckType, upstream: string): Promise<HealthCheck> {
    return this.control.read(callOf("GET", type, upstream), CHECK, { kinds: KINDS });
  }

  /** Throws AlreadyExistsError if the upstream has one of this type. */
  add(type: HealthCheckType, upstream: string, check: HealthCheck): Promise<void> {
    return this.control.change({ ...callOf("POST", type, upstream), body: check }, { kinds: KINDS });
  }

  /** Throws NotFoundError if there is none. */
  remove(type: HealthCheckType, upstream: string): Promise<void> {
    return this.control.change(callOf("DELETE", type, upstream), { kinds: KINDS });
  }
}

function callOf(method: Method, type: HealthCheckType, upstream: string): Call {
  return { method, path: `${PATHS.healthCheck}/${type}/${segment(upstream, { method, path: PATHS.healthCheck })}` };
}
