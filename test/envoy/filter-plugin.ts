/** The filter with one action for every path, in a small host of proxy-wasm. */
import type { Action, HeaderChange } from "../../core-wasm/binding/source.js";
import { hostRules, peers, prefix, route } from "../support/rules.js";
import { bundleFrom, upstream } from "./bundles.js";
import { type HostOptions, ProxyWasmHost, type Stream } from "./proxy-wasm-host.js";

export const TO_PLAIN = { kind: "proxy", upstream: "plain" } as const satisfies Action;
export const PLAIN = upstream(peers("plain", [80]));

/** A plugin of the filter with one action for every path of example.com. */
export function filterWith(action: Action, upstreams = [PLAIN], options: HostOptions = {}) {
  const host = new ProxyWasmHost(options);
  const plugin = host.configure(bundleFrom([hostRules([route(prefix("/"), action)])], upstreams));
  if (plugin === undefined) throw new Error(host.logged.join("; "));
  const get = (path = "/", headers: [string, string][] = []): Stream =>
    host.request(plugin, [
      [":authority", "example.com"],
      [":path", path],
      [":method", "GET"],
      [":scheme", "http"],
      ...headers,
    ]);
  return { host, plugin, get };
}

export function headerOf(pairs: readonly [string, string][], name: string): string | undefined {
  const values = pairs.filter(([other]) => other === name).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(" | ");
}

export function withHeaders(...headers: HeaderChange[]): Action {
  return { ...TO_PLAIN, headers };
}
