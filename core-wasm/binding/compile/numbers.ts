/** What sources name by words and images by numbers. */
import * as layout from "../../assembly/image/layout.js";
import type { HeaderChange, HostPattern, VariableName } from "../source.js";

const NUMBERS: Readonly<Record<VariableName, number>> = {
  args: layout.VAR_ARGS,
  host: layout.VAR_HOST,
  http2: layout.VAR_HTTP2,
  https: layout.VAR_HTTPS,
  query_string: layout.VAR_QUERY_STRING,
  remote_addr: layout.VAR_REMOTE_ADDR,
  remote_port: layout.VAR_REMOTE_PORT,
  request: layout.VAR_REQUEST,
  request_method: layout.VAR_REQUEST_METHOD,
  request_uri: layout.VAR_REQUEST_URI,
  scheme: layout.VAR_SCHEME,
  server_protocol: layout.VAR_SERVER_PROTOCOL,
  uri: layout.VAR_URI,
};
/** Variables by name. */
export const VARIABLES: ReadonlyMap<string, number> = new Map(Object.entries(NUMBERS));
/** Names of variables by number. */
export const VARIABLE_NAMES = [...VARIABLES.keys()].sort(
  (a, b) => (VARIABLES.get(a) ?? 0) - (VARIABLES.get(b) ?? 0),
) as readonly VariableName[];

/** Tags of header changes; the names stand at their tag. */
export const HEADER_CHANGES = [
  "",
  "set-request",
  "drop-request",
  "add-response",
  "hide-response",
  "pass-response",
  "ignore-response",
] as const satisfies readonly (HeaderChange["op"] | "")[];
/** Flag of "add-response". */
export const ALWAYS = 1;

/** Pattern kind and host text as the core has them. */
export function patternParts(pattern: HostPattern): { kind: number; host: string } {
  switch (pattern.kind) {
    case "exact":
      return { kind: layout.PATTERN_EXACT, host: pattern.host };
    case "wildcard":
      return {
        kind: pattern.labels === "one" ? layout.PATTERN_ONE_LABEL : layout.PATTERN_ANY_LABELS,
        host: pattern.suffix,
      };
    case "any":
      return { kind: layout.PATTERN_ANY_HOST, host: "" };
    case "default":
      return { kind: layout.PATTERN_DEFAULT, host: "" };
  }
}
