import type { Logger, LogLevel } from "../../observability/logger.js";

/** `2026/01/02 03:04:05 [error] 12#34: *56 text`; what NGINX says before it has a log has no time. */
const LINE = /^(?:[\d/]+ [\d:]+ |(?:nginx|njet): )\[(\w+)\] (?:(\d+)#\d+: )?(?:\*\d+ )?(.*)$/s;
const LEVELS: Record<string, LogLevel> = {
  debug: "debug",
  info: "debug",
  notice: "debug",
  warn: "warn",
  error: "error",
  crit: "error",
  alert: "error",
  emerg: "error",
};
const NO_PORT = "still could not bind()";
const TAKEN = /^bind\(\) to \S+:(\d+) failed \(\d+: Address already in use\)/;
/** Longer lines are cut; NGINX itself cuts at 2,048 bytes. */
const LONGEST = 4096;
const LONGEST_ENTRY = 2048;
/** Behind it NGINX writes what a client has sent in place of a PROXY protocol header as it is, ends of lines too. */
const RAW = 'broken header: "';
/** Severe lines that are kept for whoever asks why a start has failed. */
const KEPT = 8;

/** Reads the error log of an NGINX and passes it on, line by line. */
export class ErrorLog {
  private rest = "";
  private severe: string[] = [];
  /**
   * Characters for which lines may still be a client's: so many as an entry can have. No character stands for less than a byte, so this
   * is never too few.
   */
  private doubtful = 0;

  /** `name`: what the log calls the server. */
  constructor(
    private readonly logger: Logger,
    private readonly name = "nginx",
  ) {}

  /** The last lines about why NGINX could not go on; empty if there are none. */
  get why(): string {
    return this.severe.join("; ");
  }

  /**
   * Ports that NGINX could not have because somebody listens there, as far as it has named them; none if it had all of them in the end,
   * which it tries for 2.5 seconds.
   */
  get taken(): number[] {
    if (!this.severe.includes(NO_PORT)) return [];
    return this.severe.flatMap((text) => {
      const port = TAKEN.exec(text)?.[1];
      return port === undefined ? [] : [Number(port)];
    });
  }

  /** A new NGINX begins. */
  begin(): void {
    this.rest = "";
    this.severe = [];
    this.doubtful = 0;
  }

  /** Takes in a part of the log. */
  take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = (lines.pop() ?? "").slice(0, LONGEST);
    for (const line of lines) {
      const own = this.doubtful <= 0;
      if (line !== "" && own) this.line(line.slice(0, LONGEST));
      // Shown, but for what it is: nothing in it counts as said by NGINX.
      else if (line !== "") this.logger.error(this.name, { severity: "error", doubtful: line.slice(0, LONGEST) });
      // Also in a doubtful line: where it is an entry of its own, that one may go on for longer.
      if (line.includes(RAW)) this.doubtful = LONGEST_ENTRY;
      this.doubtful -= line.length + 1;
    }
  }

  private line(line: string): void {
    const found = LINE.exec(line);
    const [, severity = "error", pid, text = line] = found ?? [];
    const level = LEVELS[severity] ?? "error";
    if (severity === "emerg") this.severe = [...this.severe, text].slice(-KEPT);
    this.logger[level](this.name, { severity, ...(pid !== undefined && { pid: Number(pid) }), text });
  }
}
