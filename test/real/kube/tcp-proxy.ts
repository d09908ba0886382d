import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands before a server on loopback, and cuts connections when it is told to. */
export class TcpProxy {
  #open = true;
  /** Connections taken so far. */
  taken = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor(target: number) {
    this.#server = createServer((client) => {
      if (!this.#open) {
        client.destroy();
        return;
      }
      this.taken += 1;
      const upstream = connect(target, "127.0.0.1");
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ]) {
        this.#sockets.add(from);
        from.on("error", () => undefined);
        from.on("close", () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        from.pipe(to);
      }
    });
  }

  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get server(): string {
    return `https://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Cuts every connection; new ones are taken. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Cuts every connection and takes no new one until `unblock`. */
  block(): void {
    this.#open = false;
    this.cut();
  }

  unblock(): void {
    this.#open = true;
  }

  /** Lets connections stand, but nothing comes through any more, as when a network drops packets. */
  freeze(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  async close(): Promise<void> {
    this.block();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
