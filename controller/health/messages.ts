/**
 * What a controller and its probe process say to each other. Both sides check what they get: it may be of another version,
 * and before the token is known it may be anybody's.
 */
import { isIP } from "node:net";
import { HEALTH_STATES, type HealthState } from "../../core-wasm/binding/health-tracker.js";
import type { HealthCheck } from "../model/types.js";
import { stateNumber } from "./board.js";
import type { CheckedPeer, CheckedUpstream } from "./checked-upstream.js";

/** Raised with every change that the other side would misunderstand. */
export const PROTOCOL_VERSION = 1;

/** Address, port, drains (0 or 1), number of the state to begin with. */
type PeerTuple = [string, number, number, number];

/** Upstream key, address, port, number of the state, reason. */
type StateTuple = [string, string, number, number, string];

/** A peer and the state that it is in. */
export interface PeerReport {
  upstream: string;
  address: string;
  port: number;
  state: HealthState;
  reason: string;
}

/** From the controller. Each but `hello` is counted: see `at` of `Report`. */
export type Command =
  | { type: "hello"; version: number; token: string }
  | { type: "set"; upstream: CheckedUpstream }
  | { type: "peers"; key: string; peers: CheckedPeer[]; gone: { address: string; port: number }[] }
  | { type: "remove"; key: string }
  /** Everything is said: upstreams that were not set since `hello` are not wanted any more. */
  | { type: "synced" };

/** What a probe process says of itself: its age, probes that ended and failed since it began, those of now, CPU time, bytes. */
export interface ProbeProcessFigures {
  upMs: number;
  ended: number;
  failed: number;
  underWay: number;
  waiting: number;
  cpuMs: number;
  rss: number;
}

/** From the probe process. */
export type Report =
  | { type: "welcome"; version: number; pid: number }
  /** Another controller has taken over, or the version is another. */
  | { type: "refused"; reason: "replaced" | "version" }
  /** How peers are, as of so many commands (`at`) of this connection; `known`: they are not new, the controller is. */
  | { type: "states"; at: number; known: boolean; peers: PeerReport[] }
  /** Sent every few seconds: the process is well. */
  | ({ type: "alive" } & ProbeProcessFigures);

/** A message is not what its type says. */
export class MessageError extends Error {
  override readonly name = "MessageError";
}

/** A command as it is sent. */
export function encodeCommand(command: Command): unknown {
  switch (command.type) {
    case "set": {
      const { key, check, slowStart, peers } = command.upstream;
      return { type: "set", key, check, slowStart, peers: peers.map(peerTuple) };
    }
    case "peers":
      return {
        type: "peers",
        key: command.key,
        peers: command.peers.map(peerTuple),
        gone: command.gone.map(({ address, port }) => [address, port]),
      };
    default:
      return command;
  }
}

/** Throws MessageError. */
export function decodeCommand(message: unknown): Command {
  const fields = new Fields(message);
  const type = fields.text("type");
  switch (type) {
    case "hello":
      return { type, version: fields.integer("version"), token: fields.text("token") };
    case "set": {
      const [key, check] = [fields.text("key"), decodeCheck(fields.value("check"))];
      const slowStart = fields.integer("slowStart", 0, 2 ** 31);
      return { type, upstream: { key, check, slowStart, peers: fields.list("peers").map(decodePeer) } };
    }
    case "peers": {
      const gone = fields.list("gone").map((item) => place(tuple(item, 2)));
      return { type, key: fields.text("key"), peers: fields.list("peers").map(decodePeer), gone };
    }
    case "remove":
      return { type, key: fields.text("key") };
    case "synced":
      return { type };
    default:
      throw new MessageError("a command of no known type");
  }
}

/** A report as it is sent. */
export function encodeReport(report: Report): unknown {
  if (report.type !== "states") return report;
  return { ...report, peers: report.peers.map(stateTuple) };
}

/** Throws MessageError. */
export function decodeReport(message: unknown): Report {
  const fields = new Fields(message);
  const type = fields.text("type");
  switch (type) {
    case "welcome":
      return { type, version: fields.integer("version"), pid: fields.integer("pid", 2) };
    case "refused":
      return { type, reason: fields.text("reason") === "version" ? "version" : "replaced" };
    case "states": {
      const known = fields.value("known") === true;
      return { type, at: fields.integer("at"), known, peers: fields.list("peers").map(decodeState) };
    }
    case "alive": {
      const number = (name: string) => fields.integer(name);
      return {
        type,
        upMs: number("upMs"),
        ended: number("ended"),
        failed: number("failed"),
        underWay: number("underWay"),
        waiting: number("waiting"),
        cpuMs: number("cpuMs"),
        rss: number("rss"),
      };
    }
    default:
      throw new MessageError("a report of no known type");
  }
}

function peerTuple({ address, port, draining, state = "unchecked" }: CheckedPeer): PeerTuple {
  return [address, port, Number(draining), stateNumber(state)];
}

function stateTuple({ upstream, address, port, state, reason }: PeerReport): StateTuple {
  return [upstream, address, port, stateNumber(state), reason];
}

function decodePeer(item: unknown): CheckedPeer {
  const [address, port, draining, state] = tuple(item, 4);
  return { ...place([address, port]), draining: draining === 1, state: stateOf(state) };
}

function decodeState(item: unknown): PeerReport {
  const [upstream, address, port, state, reason] = tuple(item, 5);
  if (typeof upstream !== "string" || typeof reason !== "string") throw new MessageError("a state of no upstream");
  return { upstream, ...place([address, port]), state: stateOf(state), reason };
}

function place([address, port]: unknown[]): { address: string; port: number } {
  if (typeof address !== "string" || isIP(address) === 0) throw new MessageError("a peer without an address");
  if (!isInteger(port, 1, 65_535)) throw new MessageError("a peer without a port");
  return { address, port };
}

function stateOf(value: unknown): HealthState {
  if (!isInteger(value, 0, HEALTH_STATES.length - 1)) throw new MessageError("no state");
  return HEALTH_STATES[value];
}

function tuple(item: unknown, length: number): unknown[] {
  if (!Array.isArray(item) || item.length !== length) throw new MessageError(`not ${length} values`);
  return item;
}

const MOST_TIME = 2 ** 31 - 1;

function decodeCheck(value: unknown): HealthCheck {
  const fields = new Fields(value);
  const type = fields.text("type");
  if (type !== "http" && type !== "grpc" && type !== "tcp") throw new MessageError("a check of no known type");
  const time = (name: string, least = 1) => fields.integer(name, least, MOST_TIME);
  return {
    type,
    tls: fields.value("tls") === true,
    path: fields.text("path"),
    headers: fields.list("headers").map((header) => {
      const pair = new Fields(header);
      return { name: pair.text("name"), value: pair.text("value") };
    }),
    interval: time("interval"),
    jitter: time("jitter", 0),
    fails: fields.integer("fails", 1, 0x7fff),
    passes: fields.integer("passes", 1, 0x7fff),
    connectTimeout: time("connectTimeout"),
    readTimeout: time("readTimeout"),
    sendTimeout: time("sendTimeout"),
    grpcService: fields.text("grpcService"),
    persistent: fields.value("persistent") === true,
    ...(fields.has("port") ? { port: fields.integer("port", 1, 65_535) } : {}),
    ...(fields.has("keepaliveTime") ? { keepaliveTime: time("keepaliveTime") } : {}),
    ...(fields.has("statusMatch") ? { statusMatch: decodeMatch(fields.value("statusMatch")) } : {}),
    ...(fields.has("grpcStatus") ? { grpcStatus: fields.integer("grpcStatus", 0, 1000) } : {}),
  };
}

function decodeMatch(value: unknown): NonNullable<HealthCheck["statusMatch"]> {
  const fields = new Fields(value);
  const ranges = fields.list("ranges").map((range) => {
    const bounds = new Fields(range);
    return { from: bounds.integer("from"), to: bounds.integer("to") };
  });
  return { negated: fields.value("negated") === true, ranges };
}

function isInteger(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
}

/** The fields of an object of a message; each is checked as it is read. */
class Fields {
  readonly #fields: Record<string, unknown>;

  constructor(value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new MessageError("no object");
    this.#fields = value as Record<string, unknown>;
  }

  has(name: string): boolean {
    return this.value(name) !== undefined;
  }

  value(name: string): unknown {
    return Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
  }

  text(name: string): string {
    const value = this.value(name);
    if (typeof value !== "string") throw new MessageError(`${name} is no text`);
    return value;
  }

  integer(name: string, least = 0, most = Number.MAX_SAFE_INTEGER): number {
    const value = this.value(name);
    if (!isInteger(value, least, most)) throw new MessageError(`${name} is no number from ${least} to ${most}`);
    return value;
  }

  list(name: string): unknown[] {
    const value = this.value(name);
    if (!Array.isArray(value)) throw new MessageError(`${name} is no list`);
    return value;
  }
}
