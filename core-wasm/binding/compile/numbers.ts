/** What sources name by words and images by numbers. */
import * as layout from "../../assembly/image/layout.js";
import type { HeaderChange, HostPattern, ValueSource, VariableName } from "../source.js";

/** Variables by name. */
export const VARIABLES: Readonly<Record<VariableName, number>> = {
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

/** Names of variables by number. */
export const VARIABLE_NAMES: readonly VariableName[] = (Object.keys(VARIABLES) as VariableName[]).sort(
  (a, b) => VARIABLES[a] - VARIABLES[b],
);

export const SOURCES: Readonly<Record<ValueSource["kind"], number>> = {
  header: layout.SOURCE_HEADER,
  cookie: layout.SOURCE_COOKIE,
  argument: layout.SOURCE_ARGUMENT,
  variable: layout.SOURCE_VARIABLE,
};

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
