import { createServer, type IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { statusOfParserError } from "../../../core-wasm/hosts/node/head-checks.js";
import { rawAnswer } from "../../../core-wasm/hosts/node/own-answers.js";
import { errorCode } from "../../observability/logger.js";
import { type CertificateStore, MIN_TLS_VERSION } from "./certificates.js";
import { Exchange } from "./exchange.js";
import type { ListenAddress } from "./options.js";
import type { ProxyShared } from "./proxy-shared.js";

/** How often Node looks for clients that are late with their request head. */
const LATE_CHECK_INTERVAL = 1_000;
const HANDSHAKE_TIMEOUT = 15_000;

/** One port that takes requests, plain or over TLS. */
export class Listener {
  private readonly sockets = new Set<Socket>();
  private accepted = 0;
  /** Connections that were closed at once because there were too many. */
  private turnedAway = 0;

  private constructor(
    private readonly server: Server | TlsServer,
    private readonly shared: ProxyShared,
  ) {
    const { limits } = shared.settings;
    server.headersTimeout = limits.headerTimeout;
    // Would also limit how long a body may take in all; the body has an idle limit of its own instead.
    server.requestTimeout = 0;
    server.keepAliveTimeout = limits.keepAliveTimeout;
    server.maxConnections = limits.maxConnections;
    // The size is limited. A limit on the number would leave further headers out silently.
    server.maxHeadersCount = 0;
    server.timeout = 0;
    server.on("connection", (socket: Socket) => {
      if (this.sockets.has(socket)) return;
      this.accepted++;
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    server.on("drop", () => this.turnedAway++);
    server.on("request", (request, response) => this.accept(request, response, false));
    server.on("checkContinue", (request, response) => this.accept(request, response, true));
    server.on("checkExpectation", (request, response) => this.accept(request, response, true, 417));
    server.on("upgrade", (request: IncomingMessage, _socket: Duplex, head: Buffer) => {
      this.released(request.socket, () => this.upgrade(request, head));
    });
    server.on("connect", (request: IncomingMessage) => {
      this.released(request.socket, () => endWith(request.socket, 405, limits.lingerTimeout));
    });
    server.on("clientError", (error: Error, socket: Duplex) => this.clientError(error, socket));
    server.on("tlsClientError", (error: Error) => {
      shared.settings.logger.debug("TLS handshake failed", { code: errorCode(error) });
    });
  }

  static plain(shared: ProxyShared): Listener {
    return new Listener(createServer(serverOptions(shared)), shared);
  }

  /** `fallback` is for handshakes that name no host or an unknown one. */
  static tls(shared: ProxyShared, certificates: CertificateStore, fallback: { chain: string; key: string }): Listener {
    const server = createTlsServer({
      ...serverOptions(shared),
      cert: fallback.chain,
      key: fallback.key,
      minVersion: MIN_TLS_VERSION,
      // As node:http does for itself: a tunnel may end in one direction first.
      allowHalfOpen: true,
      ALPNProtocols: ["http/1.1"],
      handshakeTimeout: HANDSHAKE_TIMEOUT,
      SNICallback: (name, done) => done(null, certificates.find(name)),
    });
    return new Listener(server, shared);
  }

  /** Resolves once the port takes connections; rejects with the system's error. */
  listen(address: ListenAddress): Promise<void> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen({ port: address.port, host: address.address, backlog: 4096 }, () => {
        this.server.off("error", reject);
        this.server.on("error", (error) => this.shared.settings.logger.error("listener failed", { error }));
        resolve();
      });
    });
  }

  get address(): AddressInfo {
    const address = this.server.address();
    if (address === null || typeof address === "string") throw new Error("the listener is not open");
    return address;
  }

  get connections(): number {
    return this.sockets.size;
  }

  /** Connections so far, and those that are in the middle of a request head now. */
  connectionCounts(): { accepted: number; handled: number; reading: number } {
    let reading = 0;
    // A TLS connection is known here by the TCP connection below it, which does not show what it carries.
    if (this.server instanceof Server) {
      for (const socket of this.sockets) if (this.shared.connections.isReading(socket)) reading++;
    }
    return { accepted: this.accepted + this.turnedAway, handled: this.accepted, reading };
  }

  /** New TLS sessions only: those that were set up with an earlier certificate can't be resumed. */
  forgetSessions(keys: Buffer): void {
    if ("setTicketKeys" in this.server) this.server.setTicketKeys(keys);
  }

  /** Stops accepting; resolves when the last connection is gone. */
  close(): Promise<void> {
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  /** Closes connections that carry no request; `all` also those that never carried one. */
  closeIdle(all: boolean): void {
    this.server.closeIdleConnections();
    if (!all) return;
    const busy = new Set<string>();
    for (const { socket } of this.shared.exchanges) busy.add(connectionName(socket));
    for (const socket of this.sockets) if (!busy.has(connectionName(socket))) socket.destroy();
  }

  destroyAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  private accept(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean, refusal?: number): void {
    const { connections } = this.shared;
    connections.inTurn(request.socket, request, () => {
      new Exchange(this.shared, request, response, expectsContinue, undefined).start(refusal);
    });
  }

  /**
   * Node hands every request with an Upgrade header over as a raw connection. Those that can't become a tunnel (a
   * body comes first, or the protocol is h2c, which would take the routes out of the proxy's hands) are parsed again
   * without that header, as RFC 9110 7.8 lets a server do.
   */
  private upgrade(request: IncomingMessage, head: Buffer): void {
    const { socket } = request;
    const protocol = request.headers.upgrade ?? "";
    const length = request.headers["content-length"];
    const bodied = request.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
    if (bodied || protocol === "" || /(^|[,\s])h2c?($|[,\s])/i.test(protocol)) {
      socket.unshift(Buffer.concat([Buffer.from(headWithoutUpgrade(request), "latin1"), head]));
      this.server.emit("setTicketKeys" in this.server ? "secureConnection" : "connection", socket);
      return;
    }
    if (head.length > 0) socket.unshift(head);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.on("finish", () => socket.destroySoon());
    new Exchange(this.shared, request, response, false, protocol).start();
  }

  /** Runs `then` in its turn on a connection that Node's server has let go of. */
  private released(socket: Socket, then: () => void): void {
    // Node took its own listener away. Once only, though a connection may come here again and again.
    socket.off("error", destroyOnError).on("error", destroyOnError);
    this.shared.connections.inTurn(socket, undefined, () => {
      // The limit of an idle connection, set by the answer before.
      socket.setTimeout(0);
      then();
    });
  }

  /** The parser gave up on a connection: what came before gets its answer, then there is one for this, and the end. */
  private clientError(error: Error, duplex: Duplex): void {
    const socket = duplex as Socket;
    const { connections, settings } = this.shared;
    // Answered already; Node reports every further piece of nonsense.
    if (socket.writableEnded) return;
    const status = statusOfParserError(errorCode(error));
    if (status === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    const active = connections.active(socket);
    connections.dropIncomplete(socket);
    if (active?.awaitsBody === true) active.inputFailed(status);
    else connections.inTurn(socket, undefined, () => endWith(socket, status, settings.limits.lingerTimeout));
  }
}

function destroyOnError(this: Socket): void {
  this.destroy();
}

function serverOptions(shared: ProxyShared) {
  return {
    maxHeaderSize: shared.settings.limits.maxHeadSize,
    insecureHTTPParser: false,
    // Checked with the rest of the head, so that the refusal looks like every other and is logged.
    requireHostHeader: false,
    connectionsCheckingInterval: LATE_CHECK_INTERVAL,
    noDelay: true,
    keepAlive: true,
    highWaterMark: 64 * 1024,
  };
}

/**
 * Answers and ends a connection that no exchange is in charge of. What the client still sends is thrown away for
 * `linger` milliseconds: closing on it would reset the connection, and the answer could be lost.
 */
function endWith(socket: Socket, status: number, linger: number): void {
  socket.off("error", destroyOnError).on("error", destroyOnError);
  socket.end(rawAnswer(status), "latin1");
  const timer = setTimeout(() => socket.destroy(), linger);
  socket.on("close", () => clearTimeout(timer));
  socket.on("end", () => socket.destroy());
  socket.resume();
}

function headWithoutUpgrade(request: IncomingMessage): string {
  let head = `${request.method} ${request.url} HTTP/${request.httpVersion}\r\n`;
  const raw = request.rawHeaders;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].toLowerCase();
    if (name === "upgrade" || name === "http2-settings") continue;
    const value = name === "connection" ? withoutUpgrade(raw[i + 1]) : raw[i + 1];
    head += `${raw[i]}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

function withoutUpgrade(value: string): string {
  const kept = value.split(",").filter((token) => token.trim().toLowerCase() !== "upgrade");
  return kept.length === 0 ? "keep-alive" : kept.join(",");
}

/** The same for a TLS connection and for the TCP connection below it. */
function connectionName(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localPort}`;
}
