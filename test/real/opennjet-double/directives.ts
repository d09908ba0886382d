import { ConditionError, type ConditionTree, parseCondition } from "./conditions.js";
import { ConfigurationError, type Directive } from "./configuration-text.js";
import { type PcrePattern, pcrePattern } from "./pcre.js";

/** Directives that a location can have here, with the number of their arguments. Others are unknown, as in an OpenNJet without the module. */
const IN_LOCATION: Record<string, [least: number, most: number]> = {
  access_log: [1, 9],
  add_header: [2, 3],
  alias: [1, 1],
  client_body_buffer_size: [1, 1],
  client_max_body_size: [1, 1],
  default_type: [1, 1],
  error_page: [2, 9],
  expires: [1, 2],
  grpc_connect_timeout: [1, 1],
  grpc_hide_header: [1, 1],
  grpc_ignore_headers: [1, 12],
  grpc_next_upstream: [1, 9],
  grpc_next_upstream_timeout: [1, 1],
  grpc_next_upstream_tries: [1, 1],
  grpc_pass_header: [1, 1],
  grpc_read_timeout: [1, 1],
  grpc_send_timeout: [1, 1],
  grpc_pass: [1, 1],
  grpc_set_header: [2, 2],
  if: [1, 9],
  internal: [0, 0],
  proxy_buffer_size: [1, 1],
  proxy_buffering: [1, 1],
  proxy_buffers: [2, 2],
  proxy_connect_timeout: [1, 1],
  proxy_hide_header: [1, 1],
  proxy_http_version: [1, 1],
  proxy_ignore_headers: [1, 12],
  proxy_intercept_errors: [1, 1],
  proxy_max_temp_file_size: [1, 1],
  proxy_next_upstream: [1, 9],
  proxy_next_upstream_timeout: [1, 1],
  proxy_next_upstream_tries: [1, 1],
  proxy_pass: [1, 1],
  proxy_pass_header: [1, 1],
  proxy_pass_request_headers: [1, 1],
  proxy_read_timeout: [1, 1],
  proxy_redirect: [1, 2],
  proxy_request_buffering: [1, 1],
  proxy_send_timeout: [1, 1],
  proxy_set_header: [2, 2],
  proxy_ssl_name: [1, 1],
  proxy_ssl_server_name: [1, 1],
  proxy_ssl_verify: [1, 1],
  return: [1, 2],
  rewrite: [2, 3],
  root: [1, 1],
  set: [2, 2],
};

const LUA_BLOCKS = new Set(
  ["access", "body_filter", "content", "header_filter", "log", "rewrite"].map((one) => `${one}_by_lua_block`),
);
const MODIFIERS: readonly string[] = ["=", "^~", "~", "~*"];

export type LocationRule = "" | "=" | "^~" | "~" | "~*";

/** A location that was read from text. */
export interface ParsedLocation {
  rule: LocationRule;
  name: string;
  condition?: ConditionTree;
  pattern?: PcrePattern;
  directives: Directive[];
  locations: ParsedLocation[];
}

/** The locations of a text that should hold one. Throws ConfigurationError. */
export function parseLocations(directives: Directive[]): ParsedLocation[] {
  return directives.map((directive) => {
    if (directive.name !== "location") throw unknown(directive);
    return parseLocation(directive);
  });
}

function parseLocation({ args, written, line, block }: Directive): ParsedLocation {
  if (block === undefined) throw new ConfigurationError('directive "location" has no opening "{"', line);
  const head = headOf(args, written.slice(1), line);
  const directives: Directive[] = [];
  const locations: ParsedLocation[] = [];
  for (const one of block) {
    if (one.name !== "location") {
      checkDirective(one);
      directives.push(one);
      continue;
    }
    const inner = parseLocation(one);
    if (head.rule === "=" || head.condition !== undefined) {
      throw new ConfigurationError(
        `location "${inner.name}" cannot be inside the exact location "${head.name}"`,
        one.line,
      );
    }
    if (inner.condition === undefined && inner.pattern === undefined && !inner.name.startsWith(head.name)) {
      throw new ConfigurationError(`location "${inner.name}" is outside location "${head.name}"`, one.line);
    }
    locations.push(inner);
  }
  return { ...head, directives, locations };
}

function headOf(args: string[], written: string[], line: number): Omit<ParsedLocation, "directives" | "locations"> {
  const modifier = new ConfigurationError(`invalid location modifier "${args[0] ?? ""}"`, line);
  if (args.length === 0) throw new ConfigurationError('invalid number of arguments in "location" directive', line);
  if (args[0].startsWith("(")) {
    const name = written.join(" ");
    try {
      return { rule: "", name, condition: parseCondition(name) };
    } catch (error) {
      if (error instanceof ConditionError) throw modifier;
      throw error;
    }
  }
  if (args.length > 2 || (args.length === 2 && !MODIFIERS.includes(args[0]))) throw modifier;
  const rule = (args.length === 2 ? args[0] : "") as LocationRule;
  const name = args[args.length - 1];
  if (!rule.startsWith("~")) return { rule, name };
  try {
    return { rule, name, pattern: pcrePattern(name, rule === "~*") };
  } catch {
    throw new ConfigurationError(`pcre2_compile() failed in "${name}"`, line);
  }
}

/** Throws ConfigurationError for what a location can't have. */
function checkDirective(directive: Directive): void {
  const { name, args, block, lua, line } = directive;
  if (lua !== undefined && LUA_BLOCKS.has(name)) return;
  const limits = Object.hasOwn(IN_LOCATION, name) ? IN_LOCATION[name] : undefined;
  if (limits === undefined) throw unknown(directive);
  if (block !== undefined && name !== "if") {
    throw new ConfigurationError(`directive "${name}" is not terminated by ";"`, line);
  }
  if (block === undefined && name === "if") throw new ConfigurationError('directive "if" has no opening "{"', line);
  if (args.length < limits[0] || args.length > limits[1]) {
    throw new ConfigurationError(`invalid number of arguments in "${name}" directive`, line);
  }
  for (const inner of block ?? []) checkDirective(inner);
}

function unknown({ name, line }: Directive): ConfigurationError {
  return new ConfigurationError(`unknown directive "${name}"`, line);
}
