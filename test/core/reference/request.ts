/**
 * What a request's host and target mean, read from the rules as literally as can be: RFC 3986 for the form of a host,
 * NGINX's ngx_http_parse_complex_uri for the path. Slow, and meant to be checked by eye.
 */

const PORT = "(?::[0-9]{0,5})?";
const BRACKETED = new RegExp(`^(\\[[0-9A-Fa-f:.]+\\])${PORT}$`);
const REGISTERED_NAME = new RegExp(`^([A-Za-z0-9\\-._~!$&'()*+,;=%]+)${PORT}$`);

/** The host in lower case, without port and final dot; empty if there is none, undefined if it is not a host. */
export function readHost(raw: string): string | undefined {
  if (raw === "") return "";
  if (raw.length > 255) return undefined;
  const bracketed = BRACKETED.exec(raw);
  if (bracketed) return bracketed[1].toLowerCase();
  const name = REGISTERED_NAME.exec(raw)?.[1].toLowerCase();
  if (name === undefined || name.includes("..") || name === ".") return undefined;
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** `$uri` of a raw path that begins with a slash; undefined for one that is refused. */
export function readPath(raw: string): string | undefined {
  if (/%(?![0-9A-Fa-f]{2})|%00/.test(raw)) return undefined;
  const decoded = raw.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const kept: string[] = [];
  const segments = decoded.split("/").slice(1);
  for (const segment of segments) {
    if (segment === "..") {
      if (kept.length === 0) return undefined;
      kept.pop();
    } else if (segment !== "" && segment !== ".") {
      kept.push(segment);
    }
  }
  const endsInFolder = kept.length > 0 && ["", ".", ".."].includes(segments[segments.length - 1]);
  return `/${kept.join("/")}${endsInFolder ? "/" : ""}`;
}

export interface ReadRequest {
  host: string;
  path: string;
  /** Undefined where the target has no question mark. */
  query: string | undefined;
  /** The target in origin form, as it came. */
  target: string;
}

/** Host header and request target together; undefined for a request that is answered with 400. */
export function readRequest(rawHost: string, rawTarget: string): ReadRequest | undefined {
  let host = readHost(rawHost);
  let target = rawTarget;
  if (host === undefined || /[\0-\x20\x7f]/.test(rawTarget)) return undefined;
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/is.exec(rawTarget);
  if (absolute) {
    const authority = readHost(absolute[1]);
    if (!authority || (host !== "" && host !== authority)) return undefined;
    host = authority;
    target = absolute[2].startsWith("/") ? absolute[2] : `/${absolute[2]}`;
  }
  if (!target.startsWith("/")) return undefined;
  const [, rawPath, query] = /^([^?#]*)(?:\?([^#]*))?/s.exec(target) as RegExpExecArray;
  const path = readPath(rawPath);
  return path === undefined ? undefined : { host, path, query, target };
}
