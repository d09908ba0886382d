import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Backend, TrafficShaping } from "../../../controller/proxies/opennjet/api/backends-api.js";
import { HashRing } from "../../../core-wasm/binding/hash-ring.js";
import { sharedCore } from "../../support/core.js";
import type { Variables } from "./variables.js";

/** A peer that a request goes to. */
export interface Place {
  address: string;
  port: number;
}

interface Posted extends Backend {
  places: Place[];
  ring?: HashRing;
  next: number;
}

/** The Lua balancer of the double: `/configuration/backends`, and which peer has a request. */
export class PostedBackends {
  /** What was posted, each post by itself. */
  readonly posts: Backend[][] = [];
  /** Of `/configuration/servers`: host to name, name to PEM. */
  readonly servers = new Map<string, string>();
  private backends = new Map<string, Posted>();
  private initialized = false;
  private readonly server: Server;

  /** `random`: from 0 to below 1. `token`: what callers have to know. */
  constructor(
    private readonly random: () => number,
    private readonly token: string,
  ) {
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  async open(): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
    this.forget();
  }

  /** As after a restart: nothing was posted. */
  forget(): void {
    for (const { ring } of this.backends.values()) ring?.free();
    this.backends = new Map();
    this.initialized = false;
  }

  /** The peers of a backend in the order in which a request tries them; none where there is no such backend. */
  peersFor(name: string, variables: Variables): Place[] {
    const named = this.backends.get(name);
    const alternative = named && this.alternativeOf(named, variables);
    const backend = alternative ?? named;
    if (alternative) variables.set.set("proxy_alternative_upstream_name", alternative.name);
    if (!backend || backend.places.length === 0) return [];
    const key = backend.upstreamHashByConfig && variables.fill(backend.upstreamHashByConfig["upstream-hash-by"]);
    if (backend.ring && key) return [...backend.ring.walk(key)].map((i) => backend.ring!.peer(i));
    const cookie = this.sticky(backend, variables);
    const start = cookie ?? backend.next++;
    return backend.places.map((_, i) => backend.places[(start + i) % backend.places.length]);
  }

  private sticky({ sessionAffinityConfig: config, places }: Posted, variables: Variables): number | undefined {
    if (config?.name !== "cookie") return undefined;
    const name = config.cookieSessionAffinity?.name ?? "INGRESSCOOKIE";
    const found = places.findIndex(({ address, port }) => variables.read(`cookie_${name}`) === `${address}:${port}`);
    return found < 0 ? undefined : found;
  }

  private alternativeOf({ alternativeBackends = [] }: Posted, variables: Variables): Posted | undefined {
    const open: Posted[] = [];
    for (const name of alternativeBackends) {
      const one = this.backends.get(name);
      if (!one || one.places.length === 0) continue;
      const wanted = asked(one.trafficShapingPolicy, variables);
      if (wanted) return one;
      if (wanted === undefined) open.push(one);
    }
    let left = this.random();
    for (const one of open) {
      const { weight = 0, weightTotal = 0 } = one.trafficShapingPolicy ?? {};
      left -= weight / Math.max(100, weightTotal);
      if (left < 0) return one;
    }
    return undefined;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const [status, body] = this.answer(request, Buffer.concat(parts).toString());
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(body);
  }

  private answer({ method, url, headers }: IncomingMessage, text: string): [status: number, body: string] {
    if (headers.authorization !== `Bearer ${this.token}`) {
      return [401, '{"code":"CONTROL_TOKEN","message":"the token is missing or wrong"}'];
    }
    switch (`${method} ${url}`) {
      case "GET /configuration/backends":
        return [
          200,
          JSON.stringify([...this.backends.values()].map(({ places: _, ring: __, next: ___, ...rest }) => rest)),
        ];
      case "POST /configuration/backends":
        return this.take(text);
      case "POST /configuration/servers":
        for (const [host, name] of Object.entries((JSON.parse(text) as { servers?: object }).servers ?? {})) {
          this.servers.set(host, String(name));
        }
        return [201, '{"seq":1,"changed":0,"removed":0,"late":[],"failures":[]}'];
      case "GET /is-dynamic-lb-initialized":
        return this.initialized
          ? [200, '"OK"']
          : [500, '{"code":"CONFIGURATION_NONE","message":"no backends have been posted"}'];
      default:
        return [404, '{"code":"CONTROL_PATH","message":"there is no such path"}'];
    }
  }

  private take(text: string): [status: number, body: string] {
    const invalid = (message: string): [number, string] => [
      400,
      JSON.stringify({ code: "CONFIGURATION_INVALID", message: `${message}; nothing was taken` }),
    ];
    let list: Backend[];
    try {
      list = JSON.parse(text);
    } catch {
      return invalid("the body is no JSON");
    }
    if (!Array.isArray(list)) return invalid("the body must be an array");
    const wrong = list.findIndex(
      ({ name, endpoints }) => typeof name !== "string" || name === "" || !Array.isArray(endpoints),
    );
    if (wrong >= 0) return invalid(`[${wrong}] has no name or no endpoints`);
    this.posts.push(list);
    const before = this.backends;
    this.backends = new Map(list.map((one) => [one.name, posted(one, before.get(one.name))]));
    const removed = [...before.keys()].filter((name) => !this.backends.has(name)).length;
    for (const [name, { ring }] of before) if (this.backends.get(name)?.ring !== ring) ring?.free();
    this.initialized = true;
    return [201, JSON.stringify({ seq: this.posts.length, changed: list.length, removed, late: [], failures: [] })];
  }
}

function posted(backend: Backend, before: Posted | undefined): Posted {
  const places = backend.endpoints.map(({ address, port }) => ({ address, port: Number(port) }));
  const hashed = backend.upstreamHashByConfig !== undefined && places.length > 0;
  return { ...backend, places, next: before?.next ?? 0, ...(hashed && { ring: HashRing.build(sharedCore, places) }) };
}

/** What the request itself asks for: `balancer/configuration/canary.lua`. */
function asked(policy: TrafficShaping | undefined, variables: Variables): boolean | undefined {
  const rules = [policy ?? {}, ...(policy?.headers ?? [])] as Partial<TrafficShaping>[];
  for (const { header, headerValue, headerPattern } of rules) {
    const said = header ? variables.read(`http_${header.toLowerCase().replaceAll("-", "_")}`) : "";
    if (said === "") continue;
    if (headerValue) {
      if (said === headerValue) return true;
    } else if (headerPattern) {
      if (new RegExp(headerPattern).test(said)) return true;
    } else if (said === "always") return true;
    else if (said === "never") return false;
  }
  const said = policy?.cookie ? variables.read(`cookie_${policy.cookie}`) : "";
  return said === "always" ? true : said === "never" ? false : undefined;
}
