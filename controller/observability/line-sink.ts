import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";

/** Takes finished lines. Never blocks and never throws. */
export interface LineSink {
  /** `line` carries no line break; the sink adds one. */
  write(line: string): void;
}

/** Bytes (counted as characters) that wait for a slow reader before lines are dropped. */
const DEFAULT_LIMIT = 4 * 1024 * 1024;
/** A batch of this many characters is handed on at once; smaller ones wait for the end of the event loop turn. */
const BATCH = 32 * 1024;

/**
 * Gathers lines and writes them in batches. A reader that does not keep up costs lines, which are counted, and
 * never memory without bound or a blocked event loop.
 */
export class BufferedLineSink implements LineSink {
  /** Lines lost because the reader was stuck or the stream failed. */
  dropped = 0;
  private waiting = "";
  private waitingLines = 0;
  private scheduled = false;
  private stuck = false;
  private failed = false;

  constructor(
    private readonly stream: Writable,
    private readonly limit = DEFAULT_LIMIT,
  ) {
    stream.on("drain", () => {
      this.stuck = false;
      this.flush();
    });
    stream.on("error", () => {
      this.failed = true;
      this.dropped += this.waitingLines;
      this.waiting = "";
      this.waitingLines = 0;
    });
  }

  write(line: string): void {
    if (this.failed || this.waiting.length + line.length > this.limit) {
      this.dropped++;
      return;
    }
    this.waiting += `${line}\n`;
    this.waitingLines++;
    if (this.stuck) return;
    if (this.waiting.length >= BATCH) this.flush();
    else if (!this.scheduled) {
      this.scheduled = true;
      setImmediate(() => this.flush());
    }
  }

  /** Hands what is waiting to the stream, unless its reader is stuck. */
  flush(): void {
    this.scheduled = false;
    if (this.stuck || this.failed || this.waiting === "") return;
    const batch = this.waiting;
    this.waiting = "";
    this.waitingLines = 0;
    this.stuck = !this.stream.write(batch);
  }

  /** Resolves when everything that was written has left, or after `graceMs`. */
  async close(graceMs = 1000): Promise<void> {
    this.flush();
    if (this.failed || this.stream.writableLength === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.stream.write("", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/**
 * A sink on a file descriptor, 1 (standard output) by default. It does not use `process.stdout`, whose writes to a
 * pipe are synchronous on Linux: a stuck reader would stop the whole process.
 */
export function descriptorSink(descriptor = 1): BufferedLineSink {
  return new BufferedLineSink(createWriteStream("", { fd: descriptor, autoClose: false }));
}
