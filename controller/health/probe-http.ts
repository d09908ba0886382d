import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import type { HealthCheck } from "../model/types.js";
import { Attempt, type Probe, reasonOf } from "./attempt.js";
import { authority, ignoreErrors, openConnection, whenConnected } from "./connection.js";
import { statusPasses } from "./status-match.js";
import type { Outcome, Target } from "./target.js";

/** A body up to this size is read where the connection is to be kept; a larger one costs the connection. */
const MOST_BODY = 64 * 1024;

/**
 * Probes over HTTP/1.1: GET, one answer, its status. The body is not read, unless the connection is kept for the next
 * probe.
 */
export class HttpProbes {
  /** Connections that are kept, by TLS and the time for which. */
  readonly #agents = new Map<string, KeepingAgent>();
  readonly #mostKept: number;
  #kept = 0;

  /** `mostKept`: idle connections that are held at most; further ones are closed. */
  constructor(mostKept: number) {
    this.#mostKept = mostKept;
  }

  readonly probe: Probe = (target, done) => this.#probe(target, done, true);

  /** Closes the connections that are kept. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #probe(target: Target, done: (outcome: Outcome) => void, mayReuse: boolean): () => void {
    const { check } = target;
    const keeps = check.keepaliveTime !== undefined && mayReuse;
    let sent: ClientRequest | undefined;
    let retry: (() => void) | undefined;
    const attempt = new Attempt(done, () => {
      if (sent === undefined) return;
      ignoreErrors(sent);
      sent.destroy();
    });
    try {
      sent = request({
        method: "GET",
        path: check.path,
        headers: headersOf(target),
        host: target.address,
        port: target.port,
        // Which of our own addresses is nobody's business here, and no name is looked up: an address is one already.
        ...(keeps
          ? { agent: this.#agentFor(check) }
          : { createConnection: () => openConnection(target.address, target.port, check.tls) }),
      });
    } catch (error) {
      // A path or header that cannot be sent. Told later, as every outcome.
      queueMicrotask(() => attempt.fail(reasonOf(error)));
      return () => attempt.cancel();
    }
    const made = sent;
    attempt.step("connecting", check.connectTimeout);
    const progress = () => {
      if (made.writableFinished) attempt.step("waiting for the answer", check.readTimeout);
      else attempt.step("sending", check.sendTimeout);
    };
    made.on("socket", (socket: Socket) => whenConnected(socket, check.tls, progress));
    // What is written before the connection stands is not sent yet; `finish` comes when it is.
    made.on("finish", progress);
    made.on("response", (response) => {
      if (!keeps) judge(attempt, check, response.statusCode);
      else
        this.#drain(attempt, check, response, () => {
          sent = undefined;
        });
    });
    made.on("upgrade", (response, socket) => {
      socket.destroy();
      judge(attempt, check, response.statusCode);
    });
    made.on("error", (error) => {
      // The peer closed a kept connection while it was asked: that says nothing about the peer.
      if (made.reusedSocket && !attempt.over) {
        attempt.cancel();
        retry = this.#probe(target, done, false);
        return;
      }
      attempt.fail(reasonOf(error));
    });
    made.on("close", () => attempt.fail("the peer closed the connection without an answer"));
    made.end();
    return () => {
      attempt.cancel();
      retry?.();
    };
  }

  /** Reads the body so that the connection can be used again; `kept` lets go of the request. */
  #drain(attempt: Attempt, check: HealthCheck, response: IncomingMessage, kept: () => void): void {
    let size = 0;
    const { statusCode } = response;
    attempt.step("reading the answer", check.readTimeout);
    response.on("data", (part: Buffer) => {
      size += part.length;
      if (size > MOST_BODY) judge(attempt, check, statusCode);
    });
    response.on("end", () => {
      if (attempt.over) return;
      kept();
      judge(attempt, check, statusCode);
    });
    response.on("error", (error) => attempt.fail(reasonOf(error)));
  }

  #agentFor({ tls, keepaliveTime = 0 }: HealthCheck): KeepingAgent {
    const name = `${tls} ${keepaliveTime}`;
    let agent = this.#agents.get(name);
    if (agent === undefined) {
      agent = new KeepingAgent(tls, keepaliveTime, {
        room: () => this.#kept < this.#mostKept,
        count: (by) => {
          this.#kept += by;
        },
      });
      this.#agents.set(name, agent);
    }
    return agent;
  }
}

/** How many connections are kept, over all agents. */
interface KeptCount {
  room(): boolean;
  count(by: number): void;
}

/** Keeps one idle connection for each peer, for a time. */
class KeepingAgent extends Agent {
  readonly #tls: boolean;
  readonly #time: number;
  readonly #kept: KeptCount;
  readonly #counted = new WeakSet<Socket>();

  constructor(tls: boolean, time: number, kept: KeptCount) {
    super({ keepAlive: true, maxFreeSockets: 1, timeout: time });
    this.#tls = tls;
    this.#time = time;
    this.#kept = kept;
  }

  override createConnection(options: { host: string; port: number }): Socket {
    return openConnection(options.host, options.port, this.#tls);
  }

  /** Asked by Node's agent whether an idle connection is to be kept; it closes the connection when its time is over. */
  override keepSocketAlive(socket: Socket): boolean {
    if (!this.#counted.has(socket)) {
      if (!this.#kept.room()) return false;
      this.#counted.add(socket);
      this.#kept.count(1);
      socket.once("close", () => this.#kept.count(-1));
    }
    socket.setTimeout(this.#time);
    socket.unref();
    return true;
  }
}

function judge(attempt: Attempt, check: HealthCheck, status = 0): void {
  const reason = `status ${status}`;
  if (statusPasses(status, check.statusMatch)) attempt.pass(reason);
  else attempt.fail(reason);
}

const prepared = new WeakMap<Target, string[]>();

/** Names and values in turn. Host is the peer's address unless the check names one. */
function headersOf(target: Target): string[] {
  const known = prepared.get(target);
  if (known !== undefined) return known;
  const given = target.check.headers;
  const has = (name: string) => given.some((header) => header.name.toLowerCase() === name);
  const headers = has("host") ? [] : ["Host", authority(target.address, target.port)];
  if (!has("user-agent")) headers.push("User-Agent", "njet-kic-health");
  for (const { name, value } of given) headers.push(name, value);
  prepared.set(target, headers);
  return headers;
}
