import { connect, type Socket } from "node:net";

export interface Answer {
  status: number;
  body: string;
}

/** One keep-alive connection to the proxy for one request at a time, as lean as can be: it must not be what is measured. */
export class KeptConnection {
  readonly #socket: Socket;
  #received = "";
  #settle: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined;
  #broken: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      this.#received += text;
      this.#read();
    });
    socket.on("error", (error) => this.#break(error));
    socket.on("close", () => this.#break(new Error("the proxy closed the connection")));
  }

  /** Rejects if nobody listens. */
  static open(port: number): Promise<KeptConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new KeptConnection(socket));
      });
    });
  }

  /** True once the other end has closed it. */
  get closed(): boolean {
    return this.#broken !== undefined;
  }

  ask(host: string, path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) {
        reject(this.#broken);
        return;
      }
      this.#settle = { resolve, reject };
      this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: */*\r\n\r\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(): void {
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#received.slice(0, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
    if (Number.isNaN(length)) {
      this.#break(new Error(`an answer without a length: ${head.slice(0, 60)}`));
      return;
    }
    if (this.#received.length < end + 4 + length) return;
    const body = this.#received.slice(end + 4, end + 4 + length);
    this.#received = "";
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.resolve({ status: Number(head.slice(9, 12)), body });
  }

  #break(error: Error): void {
    this.#broken ??= error;
    this.#settle?.reject(this.#broken);
    this.#settle = undefined;
    this.#socket.destroy();
  }
}
