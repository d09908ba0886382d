import { rmSync, statSync } from "node:fs";
import type { Logger } from "../../observability/logger.js";
import { isListenedOn } from "../nginx/unix-socket.js";

/** Milliseconds between looks. */
const INTERVAL = 1_000;
/** What connecting to a socket fails with whose process has ended. */
const LEFT = "ECONNREFUSED";

/**
 * Looks after the unix socket of OpenNJet's control server. One that was killed, or is told to read its configuration anew, leaves
 * its socket, and the one that OpenNJet starts in its place ends over it, again and again: the control API would be gone for good.
 */
export class ApiSocket {
  /** The socket that nobody listened on at the last look. */
  private suspect: string | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly path: string,
    private readonly logger: Logger,
  ) {}

  start(): void {
    this.timer = setInterval(() => void this.look(), INTERVAL);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Takes the socket away if nobody listened on it at the last look either: one that is made just now is not listened on at once. */
  async look(): Promise<void> {
    const found = identityOf(this.path);
    const left = found !== undefined && (await isListenedOn(this.path)) === LEFT ? found : undefined;
    const before = this.suspect;
    this.suspect = left;
    if (left === undefined || left !== before || identityOf(this.path) !== left) return;
    rmSync(this.path, { force: true });
    this.suspect = undefined;
    this.logger.warn(
      "the socket that a control server of opennjet has left is taken away: it was in the way of the next one",
    );
  }
}

/** What tells a file from a later one of that name; undefined if there is none. */
function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.ino} ${found.ctimeNs}`;
}
