import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";

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
}

/** One request to a loopback port; rejects where the connection breaks before the answer is whole. */
export function ask(port: number, options: AskOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        port,
        host: "127.0.0.1",
        method: options.method ?? "GET",
        path: options.path ?? "/",
        headers: { Host: options.host ?? "shop.example.com", ...options.headers },
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
