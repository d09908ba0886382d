import type { Field } from "./field.js";
import { TOKEN } from "./names.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";

/** Headers that frame a message or belong to one connection: the proxy alone sets them, else requests can be smuggled. */
const FRAMING_HEADERS =
  /^(connection|content-length|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

export const HEADER_NAME: Shape = { ...TOKEN, not: [FRAMING_HEADERS] };

/** Name of a header that an object may set or take away. Reports HEADER_INVALID. */
export function readHeaderName(field: Field): string | undefined {
  const name = field.shaped(HEADER_NAME).requiredLine();
  if (name === undefined) return undefined;
  if (!hasShape(name, TOKEN)) {
    field.error("HEADER_INVALID", `${quote(name)} is no header name`);
    return undefined;
  }
  if (FRAMING_HEADERS.test(name)) {
    field.error("HEADER_INVALID", `${name} frames messages and is set by the proxy alone`);
    return undefined;
  }
  return name;
}
