import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { errorCode } from "../../observability/logger.js";
import type { NginxListener } from "./configured-values.js";

/**
 * Where ports for 0 are looked for: below those that systems give to connections that go out (from 32,768 on with Linux), for such
 * a connection could have the port before NGINX listens on it.
 */
const [LOWEST_FREE, HIGHEST_FREE] = [16_384, 32_768];
/** Ports that are tried before the start is given up. */
const TRIES = 64;

const LISTENERS = ["http", "https"] as const;

/** Whole numbers from `lowest` up to below `highest`. */
export type RandomPort = (lowest: number, highest: number) => number;

/**
 * The two listeners of a server, with the ports that are chosen here where 0 is asked for: NGINX itself can't choose. A chosen port is
 * held by nobody until NGINX has it, so somebody else may be faster; it is then chosen anew.
 */
export class ListenerPorts {
  private constructor(
    private readonly asked: Record<(typeof LISTENERS)[number], NginxListener>,
    private readonly random: RandomPort,
    private chosen: Record<(typeof LISTENERS)[number], NginxListener>,
  ) {}

  /** Rejects where no free port is found. */
  static async choose(
    http: NginxListener,
    https: NginxListener,
    random: RandomPort = randomInt,
  ): Promise<ListenerPorts> {
    const ports = new ListenerPorts({ http, https }, random, { http, https });
    await ports.chooseAgain([0]);
    return ports;
  }

  /** The plain listener, as it is now. */
  get http(): NginxListener {
    return this.chosen.http;
  }

  /** The TLS listener, as it is now. */
  get https(): NginxListener {
    return this.chosen.https;
  }

  /**
   * Chooses others in the place of `taken`, as far as they were chosen here. True if there was one; false where all of them were asked
   * for by number. Rejects where no free port is found.
   */
  async chooseAgain(taken: readonly number[]): Promise<boolean> {
    const again = LISTENERS.filter((name) => this.asked[name].port === 0 && taken.includes(this.chosen[name].port));
    for (const name of again) {
      const others = LISTENERS.map((other) => this.chosen[other].port);
      this.chosen = { ...this.chosen, [name]: { ...this.asked[name], port: await this.free(name, others) } };
    }
    return again.length > 0;
  }

  /** A port on which nobody listens now, and none of `others`: NGINX listens on both. */
  private async free(name: (typeof LISTENERS)[number], others: readonly number[]): Promise<number> {
    let taken: unknown;
    for (let tried = 0; tried < TRIES; ) {
      const candidate = this.random(LOWEST_FREE, HIGHEST_FREE);
      if (others.includes(candidate)) continue;
      tried++;
      try {
        await probe(this.asked[name].address, candidate);
        return candidate;
      } catch (error) {
        if (errorCode(error) !== "EADDRINUSE") throw error;
        taken = error;
      }
    }
    throw taken;
  }
}

/** Rejects where nobody can listen there. */
function probe(host: string | undefined, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host, port }, () => server.close(() => resolve()));
  });
}
