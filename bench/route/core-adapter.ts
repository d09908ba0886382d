/** The core as the route table drives it: the one file of the table that knows the binding. */
import { readFileSync } from "node:fs";
import { ACTION, ROUTE, SHARD } from "../../core-wasm/binding/context.js";
import { Core } from "../../core-wasm/binding/core.js";
import type { RequestInput } from "../../core-wasm/binding/decision.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { UPSTREAMS } from "./host-rules.js";
import type { Router } from "./peers.js";
import type { Workload } from "./workload.js";

/** Header of a shard's image: where its match section begins, where its routes begin (and the match section ends), and end. */
const MATCH_OFFSET = 28;
const ROUTES_OFFSET = 36;
const GUARDS_OFFSET = 52;
const PROXY = 1;
const NOTHING = -1;

/** A request as a proxy hands it to the core; headers are read when the core asks for them. */
export function benchRequest(host: string, target: string, headers?: ReadonlyMap<string, string>): RequestInput {
  return {
    method: "GET",
    scheme: "http",
    host,
    target,
    protocol: "HTTP/1.1",
    clientAddress: "192.0.2.1",
    clientPort: 50_000,
    header: (name) => headers?.get(name),
  };
}

/** A table of the core, in an instance of its own. */
export class CoreRoutes implements Router {
  readonly #core: Core;
  readonly #table: RouteTable;

  constructor() {
    this.#core = Core.loadSync(readFileSync(new URL("../../core.wasm", import.meta.url)));
    this.#table = new RouteTable(this.#core);
    for (const [i, key] of UPSTREAMS.entries()) {
      const peers = [1, 2, 3].map((host) => ({ address: `10.0.${i}.${host}`, port: 8080, weight: 1 }));
      this.#table.setPeers({ key, display: key, method: { kind: "round-robin" }, peers });
    }
  }

  /**
   * Decides a request as a proxy has it decided: one call with the raw host and target, their copying included, up to the
   * peer and the upstream's target in the core's output. Answers a number that names the route (its shard's address and its
   * place there), -1 for none.
   */
  find(host: string, target: string): number {
    const { context } = this.#table;
    context.route(host, target, false, 0);
    return context.word(ACTION) === PROXY ? context.word(SHARD) + context.word(ROUTE) : NOTHING;
  }

  /** The numbers of the workload's routes for requests, by the decision's own account of its origin. */
  numberOf(workload: Workload): (host: string, target: string) => number {
    const numbers = new Map(workload.routes.map(({ host, path }, number) => [host + path, number]));
    return (host, target) => {
      const decision = this.#table.decide(benchRequest(host, target), 0);
      if (decision.action !== "proxy" || !decision.origin) return NOTHING;
      return numbers.get(decision.origin.host + decision.origin.path) ?? NOTHING;
    };
  }

  /** Decides a request, headers included, without reading the decision out. */
  decide(request: RequestInput): number {
    return this.#table.context.decide(request, 0);
  }

  /** The upstream that a request goes to, undefined if it is not passed on. */
  upstreamOf(request: RequestInput): string | undefined {
    const decision = this.#table.decide(request, 0);
    return decision.action === "proxy" ? decision.upstreamKey : undefined;
  }

  /** Compiles a host and puts it in place of what stood there. Throws CoreError. */
  setHost(rules: HostRules): void {
    this.#table.setHost(rules);
  }

  /** Bytes of the match section of a host's image, and of the records of its routes. */
  matchBytes(rules: HostRules): { match: number; routes: number } {
    const image = this.#table.compileHost(rules);
    const view = new DataView(image.buffer, image.byteOffset);
    const routes = view.getUint32(ROUTES_OFFSET, true);
    return { match: routes - view.getUint32(MATCH_OFFSET, true), routes: view.getUint32(GUARDS_OFFSET, true) - routes };
  }

  /** Gives all memory back. */
  close(): void {
    this.#table.free();
  }
}
