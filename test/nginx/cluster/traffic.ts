/** Clients that do the same over and over, for as long as a scenario lasts, and note whatever goes wrong. */
import type { AskOptions } from "../../support/http-client.js";
import { ask, keepAliveAgent } from "../../support/http-client.js";
import { RawClient, servedCertificate } from "../../support/raw-client.js";
import { PORTS, until } from "./stage.js";

/** Milliseconds between the requests of one client: what is measured is not how much the machine can take. */
const PAUSE = 4;

/** Requests for `/` of a host, on kept connections or with a handshake each. */
export class Traffic {
  readonly failures: string[] = [];
  answered = 0;
  private going = true;
  private readonly clients: Promise<void>[];

  constructor(
    port: number,
    private readonly options: AskOptions,
    connections: number,
    private readonly pause = PAUSE,
  ) {
    const agent = options.tls === true ? false : keepAliveAgent(connections);
    this.clients = Array.from({ length: connections }, () => this.client(port, { ...options, agent }));
  }

  /** Resolves after so many answers more. */
  async more(count: number): Promise<void> {
    const wanted = this.answered + count;
    await until(`${count} requests to ${this.options.host} are answered`, () => this.answered >= wanted);
  }

  async stop(): Promise<void> {
    this.going = false;
    await Promise.all(this.clients);
  }

  private async client(port: number, options: AskOptions): Promise<void> {
    while (this.going) {
      const answer = await ask(port, options).then(({ status }) => status, String);
      if (answer !== 200) this.failures.push(`${answer} after ${this.answered} answers`);
      this.answered++;
      await new Promise((resolve) => setTimeout(resolve, this.pause));
    }
  }
}

/** An open WebSocket; what is written over it comes back. */
export class WebSocketClient {
  private constructor(private readonly client: RawClient) {}

  static async open(host: string): Promise<WebSocketClient> {
    const client = await RawClient.plain(PORTS.http);
    client.write(
      `GET /chat HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    await client.until((text) => text.endsWith("\r\n\r\nhello"), 30_000);
    return new WebSocketClient(client);
  }

  /** Resolves when `text` has come back; rejects where the connection is gone. */
  async echoes(text: string): Promise<void> {
    this.client.write(text);
    await this.client.until((received) => received.endsWith(text), 30_000);
  }

  close(): void {
    this.client.destroy();
  }
}

/** Common name of the certificate that a new handshake gets. */
export async function certificateName(host: string): Promise<string> {
  return String((await servedCertificate(PORTS.https, host)).subject.CN);
}

/** Addresses of the peers that answer `count` requests, one after another: each once, in order. */
export async function answering(host: string, count: number): Promise<string> {
  const seen = new Set<string>();
  for (let i = 0; i < count; i++) seen.add((await ask(PORTS.http, { host })).body);
  return [...seen].sort().join(" ");
}
