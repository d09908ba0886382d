import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import type { HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import type { Probe } from "./attempt.js";
import { HealthBoard } from "./board.js";
import { peerName } from "./checked-upstream.js";
import { FrameReader, frameOf, MOST_FRAME } from "./frames.js";
import {
  type Command,
  decodeCommand,
  encodeReport,
  type PeerReport,
  PROTOCOL_VERSION,
  type Report,
} from "./messages.js";
import { Prober } from "./prober.js";

/** Bytes of a message before the token is known. */
const MOST_HELLO = 1024;
/** How long a connection may take to say who it is. */
const HELLO_TIME = 5_000;
/** How long the first controller may take to come. */
const FIRST_TIME = 15_000;
const ALIVE_INTERVAL = 2_000;
/** Peers in one message. */
const STATES_A_MESSAGE = 5_000;
/** Connections at once: a controller, the next one, and some that will be refused. */
const MOST_CONNECTIONS = 16;

export interface ProbeServerOptions {
  tracker: HealthTracker;
  probe: Probe;
  limit: number;
  token: string;
  /** How long to go on without a controller. */
  graceMs: number;
  /** Milliseconds of a clock that only goes forward. */
  now: () => number;
  /** From [0, 1), for jitter. */
  random: () => number;
  /** Called when there is nothing more to do: no controller within the grace period, or one of another version. */
  onEnd: () => void;
}

/**
 * The probe process without its process: probes what its controller tells it to, and tells what changed. One controller
 * at a time; the newest counts. Without one it goes on for the grace period, and tells the next one how things are.
 */
export class ProbeServer {
  readonly #options: ProbeServerOptions;
  readonly #board: HealthBoard;
  readonly #prober: Prober;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #alive: NodeJS.Timeout;
  #session: Session | undefined;
  #grace: NodeJS.Timeout | undefined;

  constructor(options: ProbeServerOptions) {
    this.#options = options;
    this.#board = new HealthBoard({
      tracker: options.tracker,
      random: options.random,
      onDropped: (target) => this.#prober.drop(target),
    });
    this.#prober = new Prober(this.#board, options.probe, {
      limit: options.limit,
      now: options.now,
      onTransitions: (changed) => this.#session?.changed(changed),
    });
    this.#server = createServer((socket) => this.#greet(socket));
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#alive = setInterval(() => this.#session?.send(this.#aliveReport()), ALIVE_INTERVAL);
  }

  /** Listens on a unix socket. Rejects with the system's error. */
  async listen(path: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(path, resolve);
    });
    this.#waitForController(Math.max(FIRST_TIME, this.#options.graceMs));
  }

  close(): void {
    clearTimeout(this.#grace);
    clearInterval(this.#alive);
    this.#prober.close();
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #greet(socket: Socket): void {
    this.#sockets.add(socket);
    const reader = new FrameReader(MOST_HELLO);
    let session: Session | undefined;
    const late = setTimeout(() => socket.destroy(), HELLO_TIME);
    socket.on("data", (part) => {
      try {
        for (const message of reader.push(part)) {
          const command = decodeCommand(message);
          if (session !== undefined) this.#obey(session, command);
          else {
            session = this.#admit(socket, command);
            if (session === undefined) return;
            clearTimeout(late);
            reader.allow(MOST_FRAME);
          }
        }
      } catch {
        // Whoever sends what is no message is cut off; a controller connects again and says everything anew.
        socket.destroy();
      }
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(late);
      this.#sockets.delete(socket);
      if (session !== undefined && session === this.#session) {
        this.#session = undefined;
        this.#waitForController(this.#options.graceMs);
      }
    });
  }

  /** A session for who has the token; undefined, with the connection closed, for anybody else. */
  #admit(socket: Socket, command: Command): Session | undefined {
    if (command.type !== "hello" || !sameToken(command.token, this.#options.token)) {
      socket.destroy();
      return undefined;
    }
    const session = new Session(socket);
    if (command.version !== PROTOCOL_VERSION) {
      // A controller of another release needs a process of its own kind.
      session.end({ type: "refused", reason: "version" });
      this.#options.onEnd();
      return undefined;
    }
    this.#session?.end({ type: "refused", reason: "replaced" });
    this.#session = session;
    clearTimeout(this.#grace);
    session.send({ type: "welcome", version: PROTOCOL_VERSION, pid: process.pid });
    session.states(this.#board.states(), true);
    session.send(this.#aliveReport());
    return session;
  }

  #obey(session: Session, command: Command): void {
    // One that was replaced has nothing to say any more.
    if (session !== this.#session) return;
    const now = this.#options.now();
    session.commands++;
    switch (command.type) {
      case "set":
        session.named.add(command.upstream.key);
        this.#board.set(command.upstream, now);
        break;
      case "peers":
        this.#board.change(command.key, command.peers, command.gone, now);
        break;
      case "remove":
        this.#board.remove(command.key);
        break;
      case "synced":
        for (const key of this.#board.keys()) if (!session.named.has(key)) this.#board.remove(key);
        break;
      case "hello":
        break;
    }
    this.#prober.wake();
  }

  #waitForController(ms: number): void {
    clearTimeout(this.#grace);
    this.#grace = setTimeout(() => this.#options.onEnd(), ms);
  }

  #aliveReport(): Report {
    const { user, system } = process.cpuUsage();
    const cpuMs = Math.round((user + system) / 1000);
    const upMs = Math.round(process.uptime() * 1000);
    return { type: "alive", upMs, ...this.#prober.counts, cpuMs, rss: process.memoryUsage.rss() };
  }
}

/** A controller that has shown its token. */
class Session {
  /** Commands so far. */
  commands = 0;
  /** Upstreams that were set in this session. */
  readonly named = new Set<string>();
  readonly #socket: Socket;
  /** Changes that wait for a controller which does not read, as of which command: of each peer the last one. */
  readonly #waiting = new Map<string, { peer: PeerReport; at: number }>();
  #stuck = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("drain", () => {
      this.#stuck = false;
      const waiting = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const at of new Set(waiting.map((one) => one.at))) {
        const peers = waiting.filter((one) => one.at === at).map(({ peer }) => peer);
        this.states(peers, false, at);
      }
    });
  }

  send(report: Report): void {
    if (this.#stuck && report.type === "alive") return;
    this.#stuck = !this.#socket.write(frameOf(encodeReport(report)));
  }

  /** A busy controller costs no memory without bound. */
  changed(peers: readonly PeerReport[]): void {
    if (!this.#stuck) this.states(peers, false);
    else {
      const at = this.commands;
      for (const peer of peers) this.#waiting.set(`${peer.upstream} ${peerName(peer)}`, { peer, at });
    }
  }

  states(peers: readonly PeerReport[], known: boolean, at = this.commands): void {
    for (let i = 0; i < peers.length; i += STATES_A_MESSAGE) {
      this.send({ type: "states", at, known, peers: peers.slice(i, i + STATES_A_MESSAGE) });
    }
  }

  end(last: Report): void {
    this.#socket.end(frameOf(encodeReport(last)));
  }
}

function sameToken(given: string, own: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(own));
}
