import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type PeerCertificate, type TLSSocket } from "node:tls";

/** A client that writes exactly the bytes it is given. */
export class RawClient {
  received = "";
  closed = false;
  /** True once the other side sent its FIN. */
  ended = false;
  error: NodeJS.ErrnoException | undefined;
  private readonly waiting = new Set<() => void>();

  private constructor(readonly socket: Socket) {
    socket.on("data", (chunk: Buffer) => {
      this.received += chunk.toString("latin1");
      this.wake();
    });
    socket.on("end", () => {
      this.ended = true;
      this.wake();
    });
    socket.on("error", (error) => {
      this.error = error;
    });
    socket.on("close", () => {
      this.closed = true;
      this.wake();
    });
  }

  static async plain(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<RawClient> {
    const socket = connect({ port, host: "127.0.0.1", ...options });
    await settled(socket, "connect");
    return new RawClient(socket);
  }

  static async tls(port: number, options: ConnectionOptions = {}): Promise<RawClient> {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options });
    await settled(socket, "secureConnect");
    return new RawClient(socket);
  }

  write(text: string): void {
    this.socket.write(text, "latin1");
  }

  /** Resolves when `found` holds for what was received; rejects after `timeout` or when the connection ends before. */
  async until(found: (received: string) => boolean, timeout = 5000): Promise<string> {
    const deadline = performance.now() + timeout;
    while (!found(this.received)) {
      if (this.closed) throw new Error(`closed after ${JSON.stringify(this.received.slice(0, 400))}`);
      if (performance.now() > deadline) throw new Error(`no match in ${JSON.stringify(this.received.slice(0, 400))}`);
      await this.change(deadline);
    }
    return this.received;
  }

  /** Everything received once the connection is closed; rejects after `timeout`. */
  async end(timeout = 5000): Promise<string> {
    const deadline = performance.now() + timeout;
    while (!this.closed) {
      if (performance.now() > deadline) throw new Error(`still open: ${JSON.stringify(this.received.slice(0, 400))}`);
      await this.change(deadline);
    }
    return this.received;
  }

  destroy(): void {
    this.socket.destroy();
  }

  private change(deadline: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.waiting.delete(done);
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(done, Math.max(1, deadline - performance.now()));
      this.waiting.add(done);
    });
  }

  private wake(): void {
    for (const done of [...this.waiting]) done();
  }
}

function settled(socket: Socket, event: "connect" | "secureConnect"): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once(event, () => {
      socket.off("error", reject);
      resolve();
    });
  });
}

/** Status codes of the answers in a raw stream, in order. */
export function statuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]));
}

/** The leaf certificate that a handshake with `servername` gets. */
export async function servedCertificate(port: number, servername?: string): Promise<PeerCertificate> {
  const client = await RawClient.tls(port, servername === undefined ? {} : { servername });
  const certificate = (client.socket as TLSSocket).getPeerCertificate();
  client.destroy();
  return certificate;
}
