import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Logger } from "./logger.js";
import type { MetricsPage } from "./metrics-page.js";

const PAGE_TYPE = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN = "text/plain; charset=utf-8";
/** Times in milliseconds. `idle` ends connections whose client takes nothing of its answer. */
const LIMITS = {
  headerTimeout: 5_000,
  requestTimeout: 10_000,
  idle: 30_000,
  keepAlive: 65_000,
  headSize: 8 * 1024,
  connections: 64,
};

export interface MetricsServerOptions {
  page: MetricsPage;
  logger: Logger;
  /** True while the state in force is a whole one and requests are taken. */
  ready(): boolean;
}

/**
 * The port for those who watch: `/stats` (metrics), `/healthz` (the process answers), `/readyz` (it serves what it is
 * to serve). It only ever reads: GET and HEAD, no parameters, no body, and whatever else is asked for is refused.
 */
export class MetricsServer {
  private readonly server: Server;

  constructor(private readonly options: MetricsServerOptions) {
    this.server = createServer(
      { maxHeaderSize: LIMITS.headSize, insecureHTTPParser: false, connectionsCheckingInterval: 1_000 },
      (request, response) => void this.answer(request, response),
    );
    this.server.headersTimeout = LIMITS.headerTimeout;
    this.server.requestTimeout = LIMITS.requestTimeout;
    this.server.timeout = LIMITS.idle;
    this.server.keepAliveTimeout = LIMITS.keepAlive;
    this.server.maxConnections = LIMITS.connections;
    // Or whoever holds connections without asking for anything would keep everybody else out.
    this.server.on("drop", () => this.server.closeIdleConnections());
    // Neither is served; without a listener Node would hand the connection to nobody and leave it open.
    this.server.on("upgrade", (_request, socket) => socket.destroy());
    this.server.on("connect", (_request, socket) => socket.destroy());
  }

  /** Opens the port (0: any free one). Rejects with the system's error, such as EADDRINUSE. */
  listen(address: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen({ host: address, port }, () => {
        this.server.off("error", reject);
        this.server.on("error", (error) => this.options.logger.error("metrics listener failed", { error }));
        resolve(this.server.address() as AddressInfo);
      });
    });
  }

  /** Closes the port and every connection. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const head = request.method === "HEAD";
    const path = pathOf(request.url ?? "");
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Cache-Control", "no-store");
    try {
      if (request.method !== "GET" && !head) {
        response.setHeader("Allow", "GET, HEAD");
        // The rest of a body is not waited for.
        response.shouldKeepAlive = false;
        send(response, 405, PLAIN, "method not allowed\n", head);
      } else if (path === "/stats") {
        const page = await this.options.page.render();
        if (!response.destroyed) send(response, 200, PAGE_TYPE, page, head);
      } else if (path === "/healthz") {
        send(response, 200, PLAIN, "ok\n", head);
      } else if (path === "/readyz") {
        const ready = this.options.ready();
        send(response, ready ? 200 : 503, PLAIN, ready ? "ready\n" : "not ready\n", head);
      } else {
        send(response, 404, PLAIN, "not found\n", head);
      }
    } catch (error) {
      this.options.logger.error("metrics page failed", { error });
      if (!response.headersSent) send(response, 500, PLAIN, "metrics page failed\n", head);
      else response.destroy();
    }
  }
}

/** The path of an origin-form target, without its query. Nothing is decoded: the paths here need no escape. */
function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer, head: boolean): void {
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(head ? undefined : body);
}
