/**
 * The core as the route table drives it: the one file that knows the binding. Until the binding has a RouteTable,
 * `openCoreRoutes` answers undefined, and the table measures the other routers alone.
 */
import type { HostRules } from "../../core-wasm/binding/source.js";
import type { Router } from "./peers.js";

/** A table of the core that answers as the other routers do. */
export interface CoreRoutes extends Router {
  /**
   * The number of the route that decides a request, -1 for none: one call into the core with the raw target and host,
   * their copying included. A route's number is in its action (a `return` with the number as its body, or an upstream
   * named after it, whichever the binding reads out at least cost).
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

/** Opens an empty table of the core; undefined as long as the binding has none. */
export async function openCoreRoutes(): Promise<CoreRoutes | undefined> {
  return undefined;
}
