/** A request that waits because every peer that it could go to is busy. */
export interface Waiting {
  /** Decides anew. False if every peer is still busy; else the request waits here no longer. */
  tryAgain(): boolean;
  /** It has waited for too long, or may wait no more. */
  giveUp(): void;
}

interface Queue {
  size: number;
  /** Milliseconds. */
  timeout: number;
  /** In the order of arrival. */
  readonly waiting: Map<Waiting, NodeJS.Timeout>;
  running: boolean;
  again: boolean;
  timeouts: number;
  overflows: number;
}

/** What became of the requests that had to wait for an upstream. */
export interface QueueStatus {
  upstream: string;
  length: number;
  timeouts: number;
  overflows: number;
}

/**
 * Requests that wait for a place at a peer: NGINX's `queue`. One queue for each upstream that has one, first come first
 * served: whoever waits is asked before a new request can be, because every place that is given back is offered at once.
 */
export class PeerQueues {
  private readonly queues = new Map<string, Queue>();
  private waitingNow = 0;

  /** The settings of an upstream as they are now; undefined where nobody may wait (any more). */
  set(upstream: string, settings: { size: number; timeout: number } | undefined): void {
    const queue = this.queues.get(upstream);
    if (settings === undefined || settings.size === 0) {
      this.queues.delete(upstream);
      if (queue === undefined) return;
      this.run(queue);
      for (const waiting of [...queue.waiting.keys()]) this.end(queue, waiting, true);
    } else if (queue === undefined) {
      const fresh = { waiting: new Map(), running: false, again: false, timeouts: 0, overflows: 0 };
      this.queues.set(upstream, { ...settings, ...fresh });
    } else {
      queue.size = settings.size;
      queue.timeout = settings.timeout;
    }
  }

  /** True if the request waits now; false if the upstream has no queue, or it is full. */
  enter(upstream: string, waiting: Waiting): boolean {
    const queue = this.queues.get(upstream);
    if (queue === undefined) return false;
    if (queue.waiting.size >= queue.size) {
      queue.overflows++;
      return false;
    }
    const timer = setTimeout(() => {
      queue.timeouts++;
      this.end(queue, waiting, true);
    }, queue.timeout);
    queue.waiting.set(waiting, timer);
    this.waitingNow++;
    return true;
  }

  /** The request waits no longer, for reasons of its own. */
  leave(upstream: string, waiting: Waiting): void {
    const queue = this.queues.get(upstream);
    if (queue !== undefined) this.end(queue, waiting, false);
  }

  /** A place at a peer of the upstream was given back, or its peers have changed. */
  placeFree(upstream: string): void {
    if (this.waitingNow === 0) return;
    const queue = this.queues.get(upstream);
    if (queue !== undefined) this.run(queue);
  }

  /** Requests that wait now. */
  get length(): number {
    return this.waitingNow;
  }

  status(): QueueStatus[] {
    return [...this.queues].map(([upstream, { waiting, timeouts, overflows }]) => {
      return { upstream, length: waiting.size, timeouts, overflows };
    });
  }

  /** Asks those who wait, in their order, until one finds every peer busy. */
  private run(queue: Queue): void {
    // A request that is let through may fail at once, and give its place back in the middle of this.
    queue.again = true;
    if (queue.running) return;
    queue.running = true;
    while (queue.again) {
      queue.again = false;
      for (const waiting of queue.waiting.keys()) {
        if (!waiting.tryAgain()) break;
        this.end(queue, waiting, false);
      }
    }
    queue.running = false;
  }

  private end(queue: Queue, waiting: Waiting, givesUp: boolean): void {
    clearTimeout(queue.waiting.get(waiting));
    if (!queue.waiting.delete(waiting)) return;
    this.waitingNow--;
    if (givesUp) waiting.giveUp();
  }
}
