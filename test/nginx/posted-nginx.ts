/** A real NGINX with the dynamic upstream API, and a location of somebody else's that passes to backends by name. */
import { request } from "node:http";
import { closing } from "../support/harness.js";
import { type Answer, ask, whole } from "../support/http-client.js";
import { httpPeer, type Peer } from "../support/peers.js";
import { RequestNginx, type RequestNginxOptions } from "./request-nginx.js";

/** Passes to the backend that the header X-Backend names. */
const LOCATION = [
  "location ^~ /by-name {",
  "  set $proxy_upstream_name $http_x_backend;",
  '  set $proxy_alternative_upstream_name "";',
  "  set $location_path /by-name;",
  "  add_header X-Alternative $proxy_alternative_upstream_name;",
  "  proxy_pass http://upstream_balancer;",
  "}",
].join(" ");

export interface Backend {
  name: string;
  [field: string]: unknown;
}

export interface ControlAnswer {
  status: number;
  body: string;
}

export interface ControlRequest {
  method?: string;
  body?: string;
  /** False: without the token. */
  token?: boolean;
}

export class ConfigurationNginx {
  private constructor(readonly nginx: RequestNginx) {}

  static async start(options: RequestNginxOptions = {}): Promise<ConfigurationNginx> {
    const edit = (text: string) => text.replace(/location \/ \{\s+rewrite_by_lua/, `${LOCATION}\n    $&`);
    const nginx = await RequestNginx.start([], { workers: 2, edit, ...options });
    return new ConfigurationNginx(nginx);
  }

  /** A request to the control endpoint. */
  async control(path: string, { method = "GET", body, token = true }: ControlRequest = {}): Promise<ControlAnswer> {
    return new Promise((resolve, reject) => {
      const headers = token ? { Authorization: `Bearer ${this.nginx.token}` } : {};
      const socketPath = this.nginx.controlSocket;
      const sent = request({ socketPath, path, method, headers, agent: false }, (response) => {
        whole(response).then(({ status, body: text }) => resolve({ status, body: text }), reject);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  /** Posts a body, and answers how to leave before the answer is there. */
  leave(path: string, body: string): () => void {
    const headers = { Authorization: `Bearer ${this.nginx.token}` };
    const sent = request({ socketPath: this.nginx.controlSocket, path, method: "POST", headers, agent: false });
    sent.on("error", () => undefined);
    sent.end(body);
    return () => sent.destroy();
  }

  post(path: string, body: unknown): Promise<ControlAnswer> {
    return this.control(path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
  }

  /** Posts backends; throws unless they are taken. Answers what was said. */
  async backends(
    ...backends: Backend[]
  ): Promise<{ seq: number; changed: number; removed: number; late: number[]; failures: unknown[] }> {
    const { status, body } = await this.post("/configuration/backends", backends);
    if (status !== 201) throw new Error(`${status}: ${body}`);
    return JSON.parse(body);
  }

  /** A client's request to a backend, on a connection of its own: any worker may answer. */
  ask(backend: string, options: { path?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
    const { path = "", headers = {} } = options;
    return ask(this.nginx.http, { path: `/by-name${path}`, headers: { "X-Backend": backend, ...headers } });
  }

  /** Names of the peers that answer `count` such requests. */
  async asked(count: number, backend: string, options: Parameters<typeof this.ask>[1] = {}): Promise<string[]> {
    const bodies: string[] = [];
    for (let i = 0; i < count; i++) {
      const { status, body } = await this.ask(backend, options);
      bodies.push(status === 200 ? body : String(status));
    }
    return bodies;
  }
}

/** A peer that answers with its name. */
export async function namedPeer(name: string): Promise<Peer> {
  return closing(await httpPeer((_, response) => response.end(name)));
}

export function endpointsOf(...ports: (number | { port: number })[]): { address: string; port: string }[] {
  return ports.map((one) => ({ address: "127.0.0.1", port: String(typeof one === "number" ? one : one.port) }));
}

/** The first cookie of an answer, as `name=value`; undefined without one. */
export function cookieOf({ headers }: Answer): string | undefined {
  return headers["set-cookie"]?.[0]?.split(";")[0];
}
