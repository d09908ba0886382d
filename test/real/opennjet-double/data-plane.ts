import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { locationFor, serverFor } from "./choose-location.js";
import { passRequest } from "./pass-request.js";
import type { Plane } from "./plane.js";
import type { PlaneState } from "./plane-state.js";
import type { Place, PostedBackends } from "./posted-backends.js";
import { escapePath, readTarget } from "./request-target.js";
import { type Outcome, runLocation, runServer } from "./run-location.js";
import { mapped, Variables } from "./variables.js";

/** A request that the data plane has answered. */
export interface ServedRequest {
  /** Number of the worker. */
  worker: number;
  server: string;
  /** Rule and name of the location; empty where there was none. */
  location: string;
  /** `$proxy_upstream_name` of a request that was passed on. */
  backend: string;
  status: number;
  logged: boolean;
}

export interface DataPlaneOptions {
  plane: Plane;
  backends: PostedBackends;
  /** Upstreams whose peers are those that were posted. */
  balanced: readonly string[];
  /** Where a peer really is. */
  connect: (peer: Place) => Place;
  random: () => number;
}

const SOURCE = "data:";
const SERVER = "njet/4.0.1.0";

/** The listeners of the data plane: each address that a server listens on has a free port of loopback. */
export class DataPlane {
  readonly served: ServedRequest[] = [];
  private readonly listeners = new Map<string, { server: Server | TlsServer; port: number }>();
  private next = 0;
  /** A connection stays with the worker that took it. */
  private readonly takers = new WeakMap<Socket, number>();

  constructor(private readonly options: DataPlaneOptions) {}

  /** The real port of an address of the configuration. */
  port(address: string): number {
    const listener = this.listeners.get(address);
    if (!listener) throw new Error(`nothing listens on ${address}`);
    return listener.port;
  }

  /** Opens what servers listen on, and closes what none does. */
  async listen(): Promise<void> {
    const { servers } = this.options.plane.agent;
    const wanted = new Set(servers.flatMap(({ listens }) => listens));
    for (const [address, { server }] of this.listeners) {
      if (wanted.has(address)) continue;
      this.listeners.delete(address);
      await closed(server);
    }
    for (const address of wanted) {
      if (this.listeners.has(address)) continue;
      const isTls = servers.some(({ listens, tls, tlsListens }) => tls && (tlsListens ?? listens).includes(address));
      const listener = (request: IncomingMessage, response: ServerResponse) =>
        void this.serve(address, request, response);
      const server = isTls ? this.tlsServer(address, listener) : createServer({ requireHostHeader: false }, listener);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      this.listeners.set(address, { server, port: (server.address() as AddressInfo).port });
    }
  }

  async close(): Promise<void> {
    for (const { server } of this.listeners.values()) await closed(server);
    this.listeners.clear();
  }

  /** The loopback place of a member: a server of the double itself, or somebody else's. */
  place(member: string): Place {
    const listener = this.listeners.get(member);
    if (listener) return { address: "127.0.0.1", port: listener.port };
    const at = member.lastIndexOf(":");
    const address = member.slice(0, at).replace(/^\[|\]$/g, "");
    return this.options.connect({ address, port: Number(member.slice(at + 1)) });
  }

  private tlsServer(
    address: string,
    listener: (request: IncomingMessage, response: ServerResponse) => void,
  ): TlsServer {
    return createTlsServer(
      {
        requireHostHeader: false,
        // For clients that name no server.
        ...this.pairFor(address, ""),
        SNICallback: (name, done) => {
          try {
            done(null, this.certificateFor(address, name));
          } catch (error) {
            done(error instanceof Error ? error : new Error(String(error)));
          }
        },
      },
      listener,
    );
  }

  /** What a handshake gets: files are read at each one. Throws where there is nothing usable, and the handshake fails. */
  private certificateFor(address: string, name: string): SecureContext {
    return createSecureContext(this.pairFor(address, name));
  }

  private pairFor(address: string, name: string): { cert: string; key: string } {
    const state = this.options.plane.workers[this.next % this.options.plane.workers.length];
    const tls = serverFor(state, address, name)?.tls;
    if (!tls) throw new Error("no certificate");
    const cert = certificateText(state, tls.certificate, name);
    const key = certificateText(state, tls.certificateKey, name);
    return { cert, key };
  }

  private async serve(address: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { plane, random } = this.options;
    const worker = this.taker(request.socket);
    const state = plane.workers[worker];
    const target = readTarget(request.url ?? "/");
    const fallback = serverFor(state, address, "");
    if (!target || !fallback) {
      page(response, 400);
      this.log({ worker, server: fallback?.names[0] ?? "", location: "", backend: "", status: 400, logged: true });
      return;
    }
    const host = new Variables(state, fallback, request, target, 0).host();
    const server = serverFor(state, address, host) ?? fallback;
    const variables = new Variables(state, server, request, target, random());
    variables.set.set("pid", String(worker + 1));
    let outcome = runServer(server.directives, variables);
    let location: (typeof server.locations)[number] | undefined;
    if (!outcome) {
      location = locationFor(server.locations, variables);
      outcome = location ? runLocation(location.directives, variables) : { kind: "status", status: 404, headers: [] };
    }
    const status = await this.answer(outcome, request, response, variables);
    this.log({
      worker,
      server: server.names[0],
      location: location ? location.rule + location.name : "",
      backend: outcome.kind === "proxy" ? variables.read("proxy_upstream_name") : "",
      status,
      logged: location?.accessLog ?? true,
    });
  }

  private taker(socket: Socket): number {
    const known = this.takers.get(socket);
    const worker = (known ?? this.next++) % this.options.plane.workers.length;
    this.takers.set(socket, worker);
    return worker;
  }

  private log(served: ServedRequest): void {
    this.served.push(served);
  }

  private async answer(
    outcome: Outcome,
    request: IncomingMessage,
    response: ServerResponse,
    variables: Variables,
  ): Promise<number> {
    switch (outcome.kind) {
      case "answer": {
        const body = Buffer.from(outcome.body, "latin1");
        const headers = outcome.headers.flat();
        response.writeHead(outcome.status, [
          "Server",
          SERVER,
          "Content-Type",
          outcome.type,
          "Content-Length",
          String(body.length),
          ...headers,
        ]);
        response.end(body);
        return outcome.status;
      }
      case "status":
        // NGINX makes a whole URL of a path.
        page(response, outcome.status, outcome.headers);
        return outcome.status;
      case "proxy":
        return this.pass(outcome, request, response, variables);
    }
  }

  private async pass(
    { pass, directives }: Extract<Outcome, { kind: "proxy" }>,
    request: IncomingMessage,
    response: ServerResponse,
    variables: Variables,
  ): Promise<number> {
    const [, protocol, host, target] = /^(\w+):\/\/([^/]*)(\/.*)?$/.exec(pass) ?? [];
    const scheme = protocol === "https" || protocol === "grpcs" ? "https" : "http";
    const { balanced, backends, connect, plane } = this.options;
    const passing = {
      scheme,
      host,
      directives,
      ...(target !== undefined && { target: withTarget(target, variables) }),
    };
    if (balanced.includes(host)) {
      const peers = backends.peersFor(variables.read("proxy_upstream_name"), variables).map(connect);
      return passRequest(request, response, variables, { ...passing, peers });
    }
    if (!plane.members.has(host)) {
      return passRequest(request, response, variables, {
        ...passing,
        peers: [this.place(host.includes(":") ? host : `${host}:80`)],
      });
    }
    const picked = plane.members.pick(host);
    if (!picked) return passRequest(request, response, variables, { ...passing, peers: [] });
    const [member, ended] = picked;
    try {
      return await passRequest(request, response, variables, { ...passing, peers: [this.place(member)] });
    } finally {
      ended();
    }
  }
}

/** A path in `proxy_pass` takes the place of the location's; only `/` is met here. */
function withTarget(target: string, { path, query }: Variables): string {
  const whole = target === "/" ? escapePath(path) : target;
  return query === "" ? whole : `${whole}?${query}`;
}

/** A file, `data:` with PEM, or a variable of a map over `$ssl_server_name` that names one. */
function certificateText(state: PlaneState, source: string, name: string): string {
  const text = source.replaceAll(/\$(\w+)/g, (_, variable: string) => {
    const map = state.maps.find(({ keyTo }) => keyTo === `$${variable}`);
    return map ? mapped(map, name) : "";
  });
  return text.startsWith(SOURCE) ? text.slice(SOURCE.length) : readFileSync(text, "utf8");
}

function page(response: ServerResponse, status: number, headers: readonly [string, string][] = []): void {
  if (status === 444) {
    response.destroy();
    return;
  }
  const body = `<html>\r\n<head><title>${status}</title></head>\r\n<body>${status}</body>\r\n</html>\r\n`;
  response.writeHead(status, [
    "Server",
    SERVER,
    "Content-Type",
    "text/html",
    "Content-Length",
    String(body.length),
    ...headers.flat(),
  ]);
  response.end(body);
}

async function closed(server: Server | TlsServer): Promise<void> {
  const done = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await done;
}
