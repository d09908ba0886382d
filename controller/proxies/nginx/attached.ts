import { type ControlClient, NotAnswering } from "./control-client.js";
import type { NginxRunner } from "./nginx-proxy.js";

/** An NGINX that somebody else runs: it is neither started nor ended, and never signalled. */
export class AttachedNginx implements NginxRunner {
  readonly restarts = 0;

  constructor(
    private readonly client: Pick<ControlClient, "state">,
    private readonly socket: string,
  ) {}

  async start(): Promise<void> {
    try {
      await this.client.state();
    } catch (error) {
      throw new NotAnswering(`no NGINX answers on ${this.socket}: ${error instanceof Error ? error.message : error}`);
    }
  }

  async stop(): Promise<void> {}
}
