import type { ValueSource, VariableName } from "../../core-wasm/binding/source.js";

/** Which variables a text may use. `families` are those of `$arg_x`, `$http_x` and `$cookie_x`. */
export interface VariableSet {
  names: readonly VariableName[];
  families: boolean;
  /** Single members of the `$http_x` family that are allowed without the rest of it. */
  headers: readonly string[];
}

/** Conditions, return bodies and header values (virtualserver.md of the NGINX family: `variable` conditions). */
export const CONDITION_VARIABLES: VariableSet = {
  names: [
    "args",
    "http2",
    "https",
    "remote_addr",
    "remote_port",
    "query_string",
    "request",
    "request_uri",
    "request_method",
    "scheme",
    "host",
  ],
  families: true,
  headers: [],
};

/** Keys of hash methods: every value that is read from the request. */
export const HASH_KEY_VARIABLES: VariableSet = {
  names: [...CONDITION_VARIABLES.names, "uri", "server_protocol"],
  families: true,
  headers: [],
};

export const REDIRECT_VARIABLES: VariableSet = {
  names: ["scheme", "request_uri", "host"],
  families: false,
  headers: ["x-forwarded-proto"],
};

export const NO_VARIABLES: VariableSet = { names: [], families: false, headers: [] };

const FAMILY = /^(arg|http|cookie)_([A-Za-z0-9_]+)$/;

/**
 * The source of the variable `name` (without the dollar sign), or undefined if `allowed` does not have it.
 * As in NGINX, `http_x_id` is the header `x-id`.
 */
export function findVariable(name: string, allowed: VariableSet): ValueSource | undefined {
  const plain = allowed.names.find((candidate) => candidate === name);
  if (plain !== undefined) return { kind: "variable", name: plain };
  const member = FAMILY.exec(name);
  if (member === null) return undefined;
  if (member[1] === "http") {
    const header = member[2].toLowerCase().replaceAll("_", "-");
    return allowed.families || allowed.headers.includes(header) ? { kind: "header", name: header } : undefined;
  }
  if (!allowed.families) return undefined;
  return { kind: member[1] === "arg" ? "argument" : "cookie", name: member[2] };
}

/** The names that `findVariable` finds, as a piece of a regular expression; undefined where it finds none. */
export function variablePattern(allowed: VariableSet): string | undefined {
  const headers = allowed.headers.map((header) => `http_${header.replaceAll("-", "_").replace(/[a-z]/g, anyCase)}`);
  const families = allowed.families ? ["(?:arg|http|cookie)_[A-Za-z0-9_]+"] : [];
  const names = [...allowed.names, ...headers, ...families];
  return names.length === 0 ? undefined : `(?:${names.join("|")})`;
}

function anyCase(letter: string): string {
  return `[${letter.toUpperCase()}${letter}]`;
}

/** The allowed variables, for a message. */
export function listVariables(allowed: VariableSet): string {
  const names = allowed.names.map((name) => `$${name}`);
  const headers = allowed.headers.map((header) => `$http_${header.replaceAll("-", "_")}`);
  const families = allowed.families ? ["$arg_x", "$http_x", "$cookie_x"] : [];
  return [...names, ...headers, ...families].join(" ");
}
