import { ConfigurationError, parseConfiguration } from "./configuration-text.js";
import type { ParsedLocation } from "./directives.js";
import { DONE, type Message, type Result, refused } from "./messages.js";
import type { PlaneState } from "./plane-state.js";

type UpstreamMessage = Extract<Message, { about: "upstream" }>;

const IN_UPSTREAM = new Set([
  "hash",
  "ip_hash",
  "keepalive",
  "keepalive_time",
  "keepalive_timeout",
  "least_conn",
  "state",
  "zone",
]);

/** `njt_http_dyn_upstream_module.c`. */
export function applyUpstream(state: PlaneState, message: UpstreamMessage): Result {
  const name = message.upstream_name;
  const there = state.upstreams.get(name);
  if (message.type === "del") {
    if (!there) return refused(5, `error:no find upstream [${name}]!`);
    if (there.isStatic) return refused(5, `fail:upstream [${name}] is static!`);
    if (isUsed(state, name)) return refused(5, `fail:upstream [${name}] is using!`);
    state.upstreams.delete(name);
    return DONE;
  }
  if (there) return refused(5, `error:upstream[${name}] exist!`);
  const file = `${state.prefix}/logs/4_0_1_add_ups.txt`;
  try {
    const body = (message.upstream_body ?? "").trim();
    const [upstream] = parseConfiguration(`upstream ${name} {\n ${body}${/[;}]$/.test(body) ? "" : ";"}\n}\n`);
    for (const { name: directive, line } of upstream.block ?? []) {
      if (directive === "server") throw new ConfigurationError('"server" directive no support of dynamic!', line);
      if (!IN_UPSTREAM.has(directive)) throw new ConfigurationError(`unknown directive "${directive}"`, line);
    }
  } catch (error) {
    if (error instanceof ConfigurationError) return refused(4, `${error.message} in ${file}:${error.line}`);
    throw error;
  }
  state.upstreams.set(name, { isStatic: false });
  return DONE;
}

function isUsed(state: PlaneState, name: string): boolean {
  const passes = (location: ParsedLocation): boolean =>
    location.directives.some(
      (one) => one.name === "proxy_pass" && /^https?:\/\/([^/:]+)/.exec(one.args[0])?.[1] === name,
    ) || location.locations.some(passes);
  return state.servers.some(({ locations }) => locations.some(passes));
}
