import type { Socket } from "node:net";

/**
 * Bounds how many connections are open, in a way that nobody can keep others out by holding his: a new one takes the place of
 * the oldest that has not been of use yet, whether it hangs in its handshake, sends its request byte by byte or says nothing.
 * Only where each has been of use, the one goes whose last use was longest ago.
 */
export class ConnectionLimit {
  /** By address and port of the client, oldest first: a TLS socket does not tell which socket it stands on. */
  private readonly strangers = new Map<string, Socket>();
  private readonly known = new Map<string, Socket>();

  /** `most`: connections that are open at the same time. */
  constructor(private readonly most: number) {}

  /** A connection was opened; another one may be ended for it. */
  opened(socket: Socket): void {
    const name = nameOf(socket);
    this.strangers.set(name, socket);
    socket.once("close", () => {
      for (const group of [this.strangers, this.known]) if (group.get(name) === socket) group.delete(name);
    });
    if (this.strangers.size + this.known.size <= this.most) return;
    const oldest = this.strangers.size > 1 ? this.strangers : this.known.size > 0 ? this.known : this.strangers;
    const [other, victim] = oldest.entries().next().value as [string, Socket];
    oldest.delete(other);
    victim.destroy();
  }

  /** A request that came on a connection has been answered as it should be. */
  wasOfUse(connection: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const name = nameOf(connection);
    const socket = this.strangers.get(name) ?? this.known.get(name);
    if (socket === undefined) return;
    this.strangers.delete(name);
    // The latest is the last one.
    this.known.delete(name);
    this.known.set(name, socket);
  }
}

function nameOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress} ${remotePort}`;
}
