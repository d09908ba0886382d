import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { makeCertificate } from "./certificates.js";

export interface Peer {
  port: number;
  server: Server;
  /** Connections accepted so far. */
  accepted(): number;
  /** Connections open now. */
  open(): number;
  close(): Promise<void>;
}

/** A real HTTP server on a free loopback port (or on `port`). */
export function httpPeer(listener: RequestListener, port = 0): Promise<Peer> {
  return openPeer(createServer({ requireHostHeader: false }, listener), port);
}

/** As httpPeer, over TLS. */
export function httpsPeer(listener: RequestListener): Promise<Peer> {
  const pair = makeCertificate("peer", "peer.example.com");
  return openPeer(createTlsServer({ cert: pair.chain, key: pair.key }, listener), 0);
}

async function openPeer(server: Server, port: number): Promise<Peer> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket) => {
    accepted++;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    server,
    accepted: () => accepted,
    open: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

export interface TcpPeer {
  port: number;
  close(): Promise<void>;
}

/** A bare TCP server: what it answers is up to `onConnection`. */
export async function tcpPeer(onConnection: (socket: Socket) => void): Promise<TcpPeer> {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const peer = await tcpPeer(() => undefined);
  await peer.close();
  return peer.port;
}

/** Answers 200 with what the peer received, as JSON: method, target, raw headers, body. */
export function echo(request: IncomingMessage, response: ServerResponse): void {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () => {
    response.setHeader("Content-Type", "application/json");
    response.end(
      JSON.stringify({
        method: request.method,
        target: request.url,
        raw: request.rawHeaders,
        headers: request.headers,
        body: Buffer.concat(parts).toString("latin1"),
      }),
    );
  });
}

/** What `echo` answers. */
export interface Echo {
  method: string;
  target: string;
  raw: string[];
  headers: Record<string, string | undefined>;
  body: string;
}
