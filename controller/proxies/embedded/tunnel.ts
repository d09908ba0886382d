import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/**
 * Passes bytes both ways until both sides have ended; one side that ends leaves the other direction open. A tunnel
 * without traffic for `idleTimeout` milliseconds, or one with an error on either side, is taken down.
 * `done` is called once, with the number of bytes that went to the client.
 */
export function joinTunnel(client: Socket, peer: Duplex, idleTimeout: number, done: (sent: number) => void): void {
  let open = 2;
  let sent = 0;
  const timer = setTimeout(() => breakBoth(), idleTimeout);
  const breakBoth = (): void => {
    client.destroy();
    peer.destroy();
  };
  const onClose = (): void => {
    if (--open > 0) return;
    clearTimeout(timer);
    done(sent);
  };
  for (const side of [client, peer]) {
    side.on("error", breakBoth);
    side.on("close", onClose);
  }
  // A side that goes away without an end takes the other one with it.
  client.on("close", () => peer.destroy());
  peer.on("close", () => (client.writableFinished ? undefined : client.destroySoon()));
  client.on("data", () => timer.refresh());
  peer.on("data", (chunk: Buffer) => {
    sent += chunk.length;
    timer.refresh();
  });
  peer.pipe(client);
  client.pipe(peer);
}
