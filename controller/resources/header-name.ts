import type { Field } from "./field.js";
import { isHeaderName } from "./names.js";
import { quote } from "./problem.js";

/** Headers that frame a message or belong to one connection: the proxy alone sets them, else requests can be smuggled. */
const FRAMING_HEADERS = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Name of a header that an object may set or take away. Reports HEADER_INVALID. */
export function readHeaderName(field: Field): string | undefined {
  const name = field.requiredLine();
  if (name === undefined) return undefined;
  if (!isHeaderName(name)) {
    field.error("HEADER_INVALID", `${quote(name)} is no header name`);
    return undefined;
  }
  if (FRAMING_HEADERS.has(name.toLowerCase())) {
    field.error("HEADER_INVALID", `${name} frames messages and is set by the proxy alone`);
    return undefined;
  }
  return name;
}
