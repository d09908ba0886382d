import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { errorCode } from "../../observability/logger.js";
import { type CertificateStore, MIN_TLS_VERSION } from "./certificates.js";
import { Exchange } from "./exchange.js";
import { statusOfParserError } from "./head-checks.js";
import type { ListenAddress } from "./options.js";
import { rawAnswer } from "./own-answers.js";
import type { ProxyShared } from "./proxy-shared.js";

/** How often Node looks for clients that are late with their request head. */
const LATE_CHECK_INTERVAL = 1_000;
const HANDSHAKE_TIMEOUT = 15_000;

/** One port that takes requests, plain or over TLS. */
export class Listener {
  private readonly sockets = new Set<Socket>();

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
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
    server.on("request", (request, response) => this.accept(request, response, false));
    server.on("checkContinue", (request, response) => this.accept(request, response, true));
    server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
      new Exchange(shared, request, response, true, undefined).start(417);
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) =>
      this.upgrade(request, socket, head),
    );
    server.on("connect", (_request: IncomingMessage, socket: Duplex) => endWith(socket, 405));
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

  private accept(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    // What comes after a refusal on the same connection may be the body of what was refused.
    if (this.shared.refused.has(request.socket)) return;
    new Exchange(this.shared, request, response, expectsContinue, undefined).start();
  }

  /**
   * Node hands every request with an Upgrade header over as a raw connection. Those that can't become a tunnel (a
   * body comes first, or the protocol is h2c, which would take the routes out of the proxy's hands) are parsed again
   * without that header, as RFC 9110 7.8 lets a server do.
   */
  private upgrade(request: IncomingMessage, duplex: Duplex, head: Buffer): void {
    const socket = duplex as Socket;
    if (this.shared.refused.has(socket)) return;
    const protocol = request.headers.upgrade ?? "";
    const length = request.headers["content-length"];
    const bodied = request.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
    if (bodied || protocol === "" || /(^|[,\s])h2c?($|[,\s])/i.test(protocol)) {
      socket.unshift(Buffer.concat([Buffer.from(headWithoutUpgrade(request), "latin1"), head]));
      this.server.emit("setTicketKeys" in this.server ? "secureConnection" : "connection", socket);
      return;
    }
    socket.on("error", () => socket.destroy());
    if (head.length > 0) socket.unshift(head);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.on("finish", () => socket.destroySoon());
    new Exchange(this.shared, request, response, false, protocol).start();
  }

  /** The parser gave up on a connection: one answer if none has begun, then the end. */
  private clientError(error: Error, duplex: Duplex): void {
    const socket = duplex as Socket;
    const status = statusOfParserError(errorCode(error));
    this.shared.refused.add(socket);
    let last: Exchange | undefined;
    for (const exchange of this.shared.exchanges) if (exchange.socket === socket) last = exchange;
    if (status === undefined || !socket.writable) socket.destroy();
    else if (last !== undefined) last.inputFailed(status);
    else endWith(socket, status);
  }
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

function endWith(socket: Duplex, status: number): void {
  socket.on("error", () => socket.destroy());
  socket.end(rawAnswer(status), "latin1", () => socket.destroy());
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
