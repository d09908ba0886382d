import { cleanup, eventually } from "./harness.js";
import { type Answer, type AskOptions, ask, keepAliveAgent } from "./http-client.js";

/** Asks for `/` of a host until `holds` does for the answer; rejects after five seconds. */
export async function untilAnswer(port: number, host: string, holds: (answer: Answer) => boolean): Promise<void> {
  const deadline = performance.now() + 5000;
  for (;;) {
    const answer = await ask(port, { host });
    if (holds(answer)) return;
    if (performance.now() > deadline) throw new Error(`${host} still answers ${answer.status} ${answer.body}`);
  }
}

/** Requests to one host, one after another on each of some connections, for as long as a test lasts. */
export class Load {
  readonly failures: string[] = [];
  answered = 0;
  /** Body of the latest answer. */
  latest = "";
  #going = true;
  readonly #clients: Promise<void>[];

  constructor(port: number, host: string, options: AskOptions = {}, connections = 4) {
    const agent = keepAliveAgent(connections);
    const request = { ...options, host, agent };
    this.#clients = Array.from({ length: connections }, () => this.#client(port, request));
    cleanup(async () => {
      await this.stop();
      agent.destroy();
    });
  }

  async #client(port: number, request: AskOptions): Promise<void> {
    while (this.#going) {
      try {
        const { status, body } = await ask(port, request);
        if (status !== 200) this.failures.push(`status ${status}`);
        this.latest = body;
      } catch (error) {
        this.failures.push(String(error));
      }
      this.answered++;
    }
  }

  /** Waits for so many answers more. */
  async more(count: number): Promise<void> {
    const wanted = this.answered + count;
    await eventually(() => this.answered >= wanted);
  }

  async stop(): Promise<void> {
    this.#going = false;
    await Promise.all(this.#clients);
  }
}
