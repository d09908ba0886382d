import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { request as requestTls } from "node:https";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  raw: string[];
  body: string;
  trailers: NodeJS.Dict<string>;
}

export interface AskOptions {
  host?: string;
  method?: string;
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  agent?: Agent | false;
  /** Over TLS, with the host as server name; any certificate will do. */
  tls?: boolean;
}

/** One request to a loopback port; rejects where the connection breaks before the answer is whole. */
export function ask(port: number, options: AskOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const host = options.host ?? "shop.example.com";
    const tls = { servername: host, rejectUnauthorized: false };
    const sent = (options.tls === true ? requestTls : request)(
      {
        ...(options.tls === true ? tls : {}),
        port,
        host: "127.0.0.1",
        method: options.method ?? "GET",
        path: options.path ?? "/",
        headers: { Host: host, ...options.headers },
        agent: options.agent ?? false,
      },
      (response) => whole(response).then(resolve, reject),
    );
    sent.on("error", reject);
    sent.end(options.body);
  });
}

/** Reads an answer to its end; rejects if it breaks off. */
export function whole(response: IncomingMessage): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    response.on("data", (part: Buffer) => parts.push(part));
    response.on("error", reject);
    response.on("end", () => {
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        raw: response.rawHeaders,
        body: Buffer.concat(parts).toString("latin1"),
        trailers: response.trailers,
      });
    });
  });
}

/** A keep-alive agent with at most `connections` connections. */
export function keepAliveAgent(connections = 1): Agent {
  return new Agent({ keepAlive: true, maxSockets: connections });
}
