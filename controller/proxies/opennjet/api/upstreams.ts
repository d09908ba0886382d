import { type ControlServer, segment } from "./control-server.js";
import { PATHS } from "./paths.js";
import { boolean, list, map, number, object, optional, text } from "./shape.js";
import type { Call } from "./transport.js";

/** An upstream of the data plane. */
export interface UpstreamSummary {
  name: string;
  balance: string;
  zone?: { name: string; size: number };
  isStatic: boolean;
}

/** A member of an upstream. Durations are texts of NGINX: `10s`. */
export interface UpstreamMember {
  /** Its number in this upstream, until it is removed. */
  id: number;
  /** `127.0.0.1:8080`. */
  server: string;
  weight: number;
  maxConns: number;
  maxFails: number;
  failTimeout: string;
  slowStart: string;
  route: string;
  backup: boolean;
  down: boolean;
  drain?: boolean;
  service?: string;
  appData?: string;
}

/** A member to be added. OpenNJet takes one without a weight for 100, so that it is needed here. */
export type NewMember = Pick<UpstreamMember, "server" | "weight"> & Partial<Omit<UpstreamMember, "id">>;

/** What can change of a member. */
export type MemberChange = Partial<Omit<UpstreamMember, "id" | "server" | "backup">>;

/** What an upstream does with a member. */
export interface MemberState {
  id: number;
  server: string;
  /** `up`, `down`, `draining`, `unavail`, `checking` or `unhealthy`. */
  state: string;
  weight: number;
  backup: boolean;
  /** Requests under way, and all of them. */
  active: number;
  requests: number;
  fails: number;
  unavail: number;
  /** Of active checks; missing fields where there are none. */
  checks: { checks: number; fails: number; unhealthy: number; lastPassed?: boolean };
  /** Milliseconds. */
  downtime: number;
}

export interface UpstreamState {
  name: string;
  zone: string;
  peers: MemberState[];
}

const SUMMARY = map(
  object({
    name: text,
    balance: text,
    zone: optional(object<{ name: string; size: number }>({ name: text, size: number })),
    is_static: boolean,
  }),
  ({ is_static, ...rest }): UpstreamSummary => ({ ...rest, isStatic: is_static }),
);

const MEMBER = map(
  object({
    id: number,
    server: text,
    weight: number,
    max_conns: number,
    max_fails: number,
    fail_timeout: text,
    slow_start: text,
    route: text,
    backup: boolean,
    down: boolean,
    drain: optional(boolean),
    service: optional(text),
    app_data: optional(text),
  }),
  ({ max_conns, max_fails, fail_timeout, slow_start, app_data, ...rest }): UpstreamMember => ({
    ...rest,
    maxConns: max_conns,
    maxFails: max_fails,
    failTimeout: fail_timeout,
    slowStart: slow_start,
    ...(app_data !== undefined && { appData: app_data }),
  }),
);

const CHECKS = map(
  object({ checks: number, fails: number, unhealthy: number, last_passed: optional(boolean) }),
  ({ last_passed, ...rest }): MemberState["checks"] => ({
    ...rest,
    ...(last_passed !== undefined && { lastPassed: last_passed }),
  }),
);

const MEMBER_STATE = map(
  object({
    id: number,
    server: text,
    state: text,
    weight: number,
    backup: boolean,
    active: number,
    requests: number,
    fails: number,
    unavail: number,
    health_checks: CHECKS,
    downtime: number,
  }),
  ({ health_checks, ...rest }): MemberState => ({ ...rest, checks: health_checks }),
);

const STATE = object<UpstreamState>({ name: text, zone: text, peers: list(MEMBER_STATE) });

/** `/v1/dyn_ups`, and `/v1/upstream_api` for members. */
export class Upstreams {
  constructor(private readonly control: ControlServer) {}

  /**
   * Adds an upstream. `body`: directives, pasted; `zone NAME 128k; state FILE;`, no `server`. Without `state` members are
   * lost at a reload. Throws AlreadyExistsError if there is one of this name.
   */
  async add(name: string, body: string): Promise<void> {
    const call: Call = {
      method: "POST",
      path: PATHS.upstream,
      body: { type: "add", upstream_name: name, upstream_body: body },
    };
    await this.control.change(call, { exists: `error:upstream[${name}] exist!` });
  }

  /** Removes one. Throws NotFoundError if there is none, NotAllowedError if a location uses it or the configuration has it. */
  async remove(name: string): Promise<void> {
    const call: Call = { method: "PUT", path: PATHS.upstream, body: { type: "del", upstream_name: name } };
    await this.control.change(call, { missing: `error:no find upstream [${name}]!` });
  }

  /** All upstreams; needs the module `dyn_upstream`. */
  list(): Promise<UpstreamSummary[]> {
    return this.control.read({ method: "GET", path: PATHS.upstreams }, list(SUMMARY));
  }

  /** The members of all upstreams, with what they do. */
  states(): Promise<UpstreamState[]> {
    return this.control.read({ method: "GET", path: `${PATHS.members}/` }, list(STATE));
  }

  /** Those of one. Throws UpstreamApiError (UpstreamNotFound). */
  state(name: string): Promise<UpstreamState> {
    const call: Call = { method: "GET", path: PATHS.members };
    return this.control.read({ ...call, path: `${PATHS.members}/${segment(name, call)}/` }, STATE);
  }

  /** The settings of its members. */
  members(name: string): Promise<UpstreamMember[]> {
    return this.control.read(this.memberCall("GET", name), list(MEMBER));
  }

  /** Adds a member; what it has become. */
  addMember(name: string, member: NewMember): Promise<UpstreamMember> {
    return this.control.read({ ...this.memberCall("POST", name), body: memberFields(member) }, MEMBER);
  }

  /** Changes a member; what it has become. */
  changeMember(name: string, id: number, change: MemberChange): Promise<UpstreamMember> {
    return this.control.read({ ...this.memberCall("PATCH", name, id), body: memberFields(change) }, MEMBER);
  }

  /** Removes a member; what is left. */
  removeMember(name: string, id: number): Promise<UpstreamState> {
    return this.control.read(this.memberCall("DELETE", name, id), STATE);
  }

  private memberCall(method: Call["method"], name: string, id?: number): Call {
    const call: Call = { method, path: PATHS.members };
    return { method, path: `${PATHS.members}/${segment(name, call)}/servers/${id ?? ""}` };
  }
}

function memberFields({ maxConns, maxFails, failTimeout, slowStart, appData, ...rest }: Partial<NewMember>): object {
  // JSON leaves out what is undefined.
  return {
    ...rest,
    max_conns: maxConns,
    max_fails: maxFails,
    fail_timeout: failTimeout,
    slow_start: slowStart,
    app_data: appData,
  };
}
