/**
 * Which header fields are about one connection only, and what a value on the wire may hold.
 * Sources: RFC 9110 7.6.1 (Connection), 11.7 (Proxy-*), RFC 9112 6 and 7 (framing).
 */

/** Never passed on in either direction; names in lower case. */
const CONNECTION_BOUND = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "te",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-authentication-info",
]);

/** Headers that frame a message: an object can't set them, the proxy alone does. */
const FRAMING = new Set([...CONNECTION_BOUND, "content-length", "trailer", "expect"]);

export function isConnectionBound(lowerName: string): boolean {
  return CONNECTION_BOUND.has(lowerName);
}

export function isFraming(lowerName: string): boolean {
  return FRAMING.has(lowerName);
}

/**
 * Adds the names that a Connection header lists to `names` and gives it back; names that matter end to end
 * (Host, Content-Length and the like) can't be taken out this way.
 */
export function connectionNames(value: string, names: Set<string> | undefined): Set<string> | undefined {
  let found = names;
  for (const token of value.split(",")) {
    const name = token.trim().toLowerCase();
    if (name === "" || name === "keep-alive" || name === "close" || name === "upgrade" || PROTECTED.has(name)) continue;
    found ??= new Set();
    found.add(name);
  }
  return found;
}

/** A client that lists one of these in Connection would take away what the upstream's safety rests on. */
const PROTECTED = new Set([
  "host",
  "content-length",
  "content-type",
  "authorization",
  "cookie",
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-real-ip",
  "x-request-id",
]);

const UNSAFE = /[^\t\x20-\x7e\x80-\xff]/;
const UNSAFE_ALL = /[^\t\x20-\x7e\x80-\xff]+/g;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * A value that can stand in a header: control characters (CR, LF and NUL above all) and characters above one byte
 * become a space. The one place where values that come from decisions and upstreams are made safe.
 */
export function headerValue(value: string): string {
  return UNSAFE.test(value) ? value.replace(UNSAFE_ALL, " ").trim() : value;
}

export function isToken(name: string): boolean {
  return TOKEN.test(name);
}
