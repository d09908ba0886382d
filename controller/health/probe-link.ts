import { connect, type Socket } from "node:net";
import { FrameReader, frameOf, MOST_FRAME } from "./frames.js";
import { type Command, decodeReport, encodeCommand, PROTOCOL_VERSION, type Report } from "./messages.js";

/** How long a process may take to answer a hello. */
const WELCOME_TIME = 5_000;
/** A process says that it is alive every two seconds. After so long without a word it is taken for hung. */
const HUNG_AFTER = 30_000;
const LOOKS = 6;

/** Why a link is over. */
export type LinkEnd = "closed" | "replaced" | "hung";

/** A probe process that does not speak with us: another version, a wrong token, or something else altogether. */
export class LinkRefused extends Error {
  override readonly name = "LinkRefused";
}

/** The connection to a probe process that has let us in. */
export class ProbeLink {
  /** Resolves when the connection is over. */
  readonly ended: Promise<LinkEnd>;
  readonly pid: number;
  readonly #socket: Socket;
  #silentLooks = 0;
  #end: LinkEnd = "closed";

  private constructor(socket: Socket, pid: number, hungAfter: number) {
    this.#socket = socket;
    this.pid = pid;
    // Counted in turns of a timer, not by a clock: while we are too busy to read, we do not count either.
    const looks = setInterval(() => {
      if (++this.#silentLooks < LOOKS) return;
      this.#end = "hung";
      socket.destroy();
    }, hungAfter / LOOKS);
    this.ended = new Promise((resolve) => {
      socket.on("close", () => {
        clearInterval(looks);
        resolve(this.#end);
      });
    });
  }

  /**
   * Connects and says who we are. `onReport` gets what the process tells from then on. Rejects with the system's error
   * where nobody listens, with LinkRefused where we are not let in.
   */
  static open(
    path: string,
    token: string,
    onReport: (report: Report) => void,
    hungAfter = HUNG_AFTER,
  ): Promise<ProbeLink> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      const reader = new FrameReader(MOST_FRAME);
      let link: ProbeLink | undefined;
      const late = setTimeout(() => socket.destroy(), WELCOME_TIME);
      socket.on("connect", () => {
        socket.write(frameOf({ type: "hello", version: PROTOCOL_VERSION, token } satisfies Command));
      });
      socket.on("data", (part) => {
        try {
          for (const message of reader.push(part)) {
            const report = decodeReport(message);
            if (link === undefined) {
              if (report.type !== "welcome" || report.version !== PROTOCOL_VERSION) throw new LinkRefused("refused");
              clearTimeout(late);
              link = new ProbeLink(socket, report.pid, hungAfter);
              resolve(link);
            } else link.#take(report, onReport);
          }
        } catch {
          socket.destroy();
        }
      });
      socket.on("error", reject);
      socket.on("close", () => {
        clearTimeout(late);
        reject(new LinkRefused("the probe process does not let us in"));
      });
    });
  }

  send(command: Command): void {
    this.#socket.write(frameOf(encodeCommand(command)));
  }

  /** Lets go of the process, once it has got everything; of one that does not take it, after a second. */
  close(): void {
    this.#socket.end();
    const late = setTimeout(() => this.#socket.destroy(), 1000);
    this.#socket.once("close", () => clearTimeout(late));
  }

  #take(report: Report, onReport: (report: Report) => void): void {
    this.#silentLooks = 0;
    if (report.type === "refused") this.#end = "replaced";
    onReport(report);
  }
}
