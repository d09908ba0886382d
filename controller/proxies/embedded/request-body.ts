import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";

export interface RequestBodyHooks {
  /** Called before the first byte is read (the moment to answer `Expect: 100-continue`). */
  onFirstRead(): void;
  /** More than `limit` bytes have come. */
  onTooLarge(): void;
  /** The client sent nothing for `clientTimeout`. */
  onClientTimeout(): void;
  /** The upstream took nothing for `sendTimeout`. */
  onSendTimeout(): void;
}

export interface RequestBodyLimits {
  /** 0 means without limit. */
  limit: number;
  replaySize: number;
  clientTimeout: number;
  sendTimeout: number;
}

/**
 * The body of one request, read from the client only as fast as the upstream takes it. Each attempt reads its own
 * stream; what was read so far is kept, up to `replaySize`, so that a further attempt starts from the beginning.
 */
export class RequestBody {
  private received = 0;
  private started = false;
  private ended = false;
  private closed = false;
  private kept: Buffer[] | undefined = [];
  private attempt: AttemptBody | undefined;
  private timer: NodeJS.Timeout | undefined;
  private timerFor: "client" | "upstream" = "client";

  constructor(
    private readonly request: IncomingMessage,
    private readonly limits: RequestBodyLimits,
    private readonly hooks: RequestBodyHooks,
  ) {}

  /** True while a new attempt can be given the whole body. */
  get repeatable(): boolean {
    return this.kept !== undefined;
  }

  /** True once a byte was asked for. */
  get touched(): boolean {
    return this.started;
  }

  /** A stream of the whole body for the next attempt; the stream of the one before goes dead. */
  open(): Readable {
    const body = new AttemptBody(this);
    this.attempt = body;
    return body;
  }

  /** Stops reading and takes its listeners away; what is left in the connection is not read. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    this.attempt = undefined;
    this.kept = undefined;
    if (!this.started) return;
    this.request.off("data", this.onData);
    this.request.off("end", this.onEnd);
  }

  /** The attempt wants data. @internal */
  pull(body: AttemptBody): void {
    if (this.closed || body !== this.attempt) return;
    if (!body.replayed) {
      body.replayed = true;
      // Pushed without regard to the stream's own mark: it is at most `replaySize`.
      for (const chunk of this.kept ?? []) body.push(chunk);
      if (this.ended) body.push(null);
    }
    if (this.ended) return;
    if (!this.started) {
      this.started = true;
      this.hooks.onFirstRead();
      this.request.on("data", this.onData);
      this.request.on("end", this.onEnd);
    } else this.request.resume();
    this.arm("client");
  }

  /** The attempt is over. @internal */
  release(body: AttemptBody): void {
    if (body !== this.attempt) return;
    this.attempt = undefined;
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.started && !this.ended) this.request.pause();
  }

  private readonly onData = (chunk: Buffer): void => {
    this.received += chunk.length;
    if (this.limits.limit > 0 && this.received > this.limits.limit) {
      this.close();
      this.hooks.onTooLarge();
      return;
    }
    if (this.kept !== undefined) {
      if (this.received <= this.limits.replaySize) this.kept.push(chunk);
      else this.kept = undefined;
    }
    if (this.attempt?.push(chunk) === true) this.arm("client");
    else {
      this.request.pause();
      if (this.attempt !== undefined) this.arm("upstream");
    }
  };

  private readonly onEnd = (): void => {
    this.ended = true;
    // The last chunk may still wait for the upstream, but so little that undici's own timeouts cover it.
    clearTimeout(this.timer);
    this.timer = undefined;
    this.attempt?.push(null);
  };

  private arm(side: "client" | "upstream"): void {
    if (this.timer !== undefined && this.timerFor === side) {
      this.timer.refresh();
      return;
    }
    clearTimeout(this.timer);
    this.timerFor = side;
    const delay = side === "client" ? this.limits.clientTimeout : this.limits.sendTimeout;
    this.timer = setTimeout(() => {
      if (side === "client") this.hooks.onClientTimeout();
      else this.hooks.onSendTimeout();
    }, delay);
  }
}

/** One attempt's view of the body. */
class AttemptBody extends Readable {
  replayed = false;

  constructor(private readonly source: RequestBody) {
    super({ highWaterMark: 64 * 1024 });
  }

  override _read(): void {
    this.source.pull(this);
  }

  /** Never reports an error: whoever destroys an attempt's body knows why and acts on the attempt itself. */
  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    this.source.release(this);
    done(null);
  }
}
