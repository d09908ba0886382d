import { ConfigurationError, parseConfiguration } from "./configuration-text.js";
import { type ParsedLocation, parseLocations } from "./directives.js";
import { DONE, type LocationEntry, type Message, type Result, refused } from "./messages.js";
import { fullName, type PlaneServer, type PlaneState, planeLocation } from "./plane-state.js";
import { bytesOf } from "./request-target.js";

type LocationMessage = Extract<Message, { about: "location" }>;

/** `njt_http_location_module.c`: the fields are pasted into a file, which is parsed. */
export function applyLocation(state: PlaneState, message: LocationMessage): Result {
  const server = state.serverOf(message.addr_port, message.server_name);
  if (message.type === "del") return remove(server, message);
  if (!server) return refused(4, `error:host[${message.addr_port}],no find server[${message.server_name}]!`);
  const [{ location_rule = "", location_name }] = message.locations;
  if (find(server, location_rule, location_name) >= 0) {
    return refused(4, `error:location[${location_rule}${location_name}] exist!`);
  }
  const parsed = parse(bytesOf(textOf(message.locations)), state);
  if ("code" in parsed) return parsed;
  for (const location of parsed.locations) {
    const name = fullName(location.rule, location.name);
    if (server.locations.some((one) => fullName(one.rule, one.name) === name)) {
      const what = `duplicate location "${location.name}"`;
      return refused(4, `${what} in ${fileOf(state)}:1`);
    }
    server.locations.push(planeLocation(location, false));
  }
  return DONE;
}

function remove(server: PlaneServer | undefined, message: Extract<LocationMessage, { type: "del" }>): Result {
  const { addr_port, server_name, location_rule = "", location_name } = message;
  if (!server) return refused(4, `error:host[${addr_port}],no find server [${server_name}]!`);
  const at = find(server, location_rule, location_name);
  if (at < 0) return refused(4, `not find  location [${location_rule}${location_name}]!`);
  server.locations.splice(at, 1);
  return DONE;
}

function find(server: PlaneServer, rule: string, name: string): number {
  const wanted = fullName(rule, bytesOf(name));
  return server.locations.findIndex((one) => fullName(one.rule, one.name) === wanted);
}

/** The file that is written. Of several entries each next one stands inside the first. */
function textOf(entries: readonly LocationEntry[]): string {
  let text = "";
  entries.forEach((entry, i) => {
    const { location_rule = "", location_name, location_body = "", proxy_pass = "", locations = [] } = trimmed(entry);
    text += `location ${location_rule && `${location_rule} `}${location_name} {\n`;
    if (location_body) text += /[;}]$/.test(location_body) ? ` ${location_body} \n` : ` ${location_body}; \n`;
    if (proxy_pass) text += ` proxy_pass ${proxy_pass};\n`;
    if (locations.length > 0) text += textOf(locations);
    if (i > 0) text += "\n}\n";
  });
  return entries.length > 0 ? `${text}\n}\n` : text;
}

function trimmed(entry: LocationEntry): LocationEntry {
  return Object.fromEntries(
    Object.entries(entry).map(([name, value]) => [name, typeof value === "string" ? value.trim() : value]),
  ) as unknown as LocationEntry;
}

function parse(text: string, state: PlaneState): { locations: ParsedLocation[] } | Result {
  try {
    const directives = parseConfiguration(text);
    const zone = directives.flatMap(({ block }) => block ?? []).find(({ name }) => name === "zone");
    if (zone) throw new ConfigurationError('"zone" directive no support of dynamic!', zone.line);
    const locations = parseLocations(directives);
    for (const one of locations) checkUpstreams(one, state);
    return { locations };
  } catch (error) {
    if (error instanceof ConfigurationError) return refused(4, `${error.message} in ${fileOf(state)}:${error.line}`);
    throw error;
  }
}

function checkUpstreams(location: ParsedLocation, state: PlaneState): void {
  for (const { name, args, line } of location.directives) {
    if (name !== "proxy_pass") continue;
    const host = /^https?:\/\/([^/:$]+)(?=\/|$)/.exec(args[0])?.[1];
    if (host !== undefined && !/^[\d.]+$/.test(host) && !state.upstreams.has(host)) {
      throw new ConfigurationError(`host not found in upstream "${host}"`, line);
    }
  }
  for (const inner of location.locations) checkUpstreams(inner, state);
}

function fileOf({ prefix }: PlaneState): string {
  return `${prefix}/logs/4_0_add_location.txt`;
}
