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
/** Longer lines are cut; NGINX itself cuts at 2,048 bytes. */
const LONGEST = 4096;
/** Severe lines that are kept for whoever asks why a start has failed. */
const KEPT = 8;

/** Reads the error log of an NGINX and passes it on, line by line. */
export class ErrorLog {
  private rest = "";
  private severe: string[] = [];

  /** `name`: what the log calls the server. */
  constructor(
    private readonly logger: Logger,
    private readonly name = "nginx",
  ) {}

  /** The last lines about why NGINX could not go on; empty if there are none. */
  get why(): string {
    return this.severe.join("; ");
  }

  /** A new NGINX begins. */
  begin(): void {
    this.rest = "";
    this.severe = [];
  }

  /** Takes in a part of the log. */
  take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = (lines.pop() ?? "").slice(0, LONGEST);
    for (const line of lines) if (line !== "") this.line(line.slice(0, LONGEST));
  }

  private line(line: string): void {
    const found = LINE.exec(line);
    const [, severity = "error", pid, text = line] = found ?? [];
    const level = LEVELS[severity] ?? "error";
    if (severity === "emerg") this.severe = [...this.severe, text].slice(-KEPT);
    this.logger[level](this.name, { severity, ...(pid !== undefined && { pid: Number(pid) }), text });
  }
}
