/** The core as the route table drives it: the one file that knows the binding. */
import { readFileSync } from "node:fs";
import { type Context, UPSTREAM } from "../../core-wasm/binding/context.js";
import { Core } from "../../core-wasm/binding/core.js";
import type { RequestInput } from "../../core-wasm/binding/decision.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import type { Router } from "./peers.js";

/** A table of the core that answers as the other routers do. */
export interface CoreRoutes extends Router {
  /**
   * The number of the route that decides a request, -1 for none: one call into the core with the raw target and host,
   * their copying included. A route's number is the name of the upstream that it leads to.
   */
  find(host: string, target: string): number;
  /** As `find`, for a request that has these headers; the route asks for those that it needs. */
  findWithHeaders(host: string, target: string, headers: ReadonlyMap<string, string>): number;
  /** Compiles a host and puts it in place of what stood there. */
  setHost(rules: HostRules): void;
  /** Bytes of the match sections of all shards. */
  matchBytes(): number;
  /** Gives all memory back. */
  close(): void;
}

/** Offsets in a shard image and in an upstream record: ABI.md. */
const MATCH_SECTION = 28;
const ROUTES_SECTION = 36;
const KEY_LENGTH = 20;
const KEY = 40;
const DIGIT_ZERO = 48;

/** The number that the upstream of the last decision is named after; -1 if no route decided. */
function routeNumber(context: Context): number {
  const record = context.word(UPSTREAM);
  if (record === 0) return -1;
  const { bytes } = context;
  const end = record + KEY + context.words[(record + KEY_LENGTH) >> 2];
  let number = 0;
  for (let at = record + KEY; at < end; at++) number = number * 10 + bytes[at] - DIGIT_ZERO;
  return number;
}

/** A request that is filled in again and again; its headers are asked for by name. */
class BenchRequest implements RequestInput {
  readonly method = "GET";
  readonly scheme = "http";
  readonly protocol = "HTTP/1.1";
  readonly clientAddress = "192.0.2.1";
  readonly clientPort = 4711;
  host = "";
  target = "";
  headers: ReadonlyMap<string, string> = new Map();

  header(name: string): string | undefined {
    return this.headers.get(name);
  }
}

const core = await Core.load(readFileSync(new URL("../../core.wasm", import.meta.url)));

/** Opens an empty table of the core. */
export async function openCoreRoutes(): Promise<CoreRoutes> {
  const table = new RouteTable(core);
  const { context } = table;
  const request = new BenchRequest();
  const loaded = new Map<string, HostRules>();
  return {
    find(host, target) {
      context.route(host, target, false, 0);
      return routeNumber(context);
    },
    findWithHeaders(host, target, headers) {
      request.host = host;
      request.target = target;
      request.headers = headers;
      context.decide(request, 0);
      return routeNumber(context);
    },
    setHost(rules) {
      table.setHost(rules);
      loaded.set(JSON.stringify(rules.pattern), rules);
    },
    matchBytes() {
      let sum = 0;
      for (const rules of loaded.values()) {
        const image = table.compileHost(rules);
        const view = new DataView(image.buffer, image.byteOffset);
        sum += view.getUint32(ROUTES_SECTION, true) - view.getUint32(MATCH_SECTION, true);
      }
      return sum;
    },
    close() {
      table.free();
    },
  };
}
