import { connect, type Socket } from "node:net";
import { createSecureContext, type SecureContext, connect as tlsConnect } from "node:tls";

let context: SecureContext | undefined;

/** Connections that stand, TLS included. */
const standing = new WeakSet<Socket>();

/**
 * A connection to a peer, on its way. Over TLS no name is sent and no certificate is verified, as with NGINX's defaults
 * for upstreams.
 */
export function openConnection(address: string, port: number, tls: boolean, protocols?: string[]): Socket {
  const socket = tls ? openTls(address, port, protocols) : connect({ host: address, port });
  socket.once(tls ? "secureConnect" : "connect", () => standing.add(socket));
  return socket;
}

function openTls(address: string, port: number, protocols: string[] | undefined): Socket {
  // Made once: it is by far the dearest part of a TLS connection.
  context ??= createSecureContext();
  const options = { host: address, port, secureContext: context, servername: "", rejectUnauthorized: false };
  return tlsConnect(protocols === undefined ? options : { ...options, ALPNProtocols: protocols });
}

/** Calls `ready` when a connection of `openConnection` stands: at once if it does already. */
export function whenConnected(socket: Socket, tls: boolean, ready: () => void): void {
  if (standing.has(socket)) ready();
  else socket.once(tls ? "secureConnect" : "connect", ready);
}

/** `address:port`, as in a Host header. */
export function authority(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Every later error of a connection that nobody looks at any more. */
export function ignoreErrors(emitter: { on(event: "error", listener: () => void): unknown }): void {
  emitter.on("error", () => undefined);
}
