import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { pcrePattern } from "./pcre.js";
import type { PlaneMap, PlaneServer, PlaneState } from "./plane-state.js";
import type { RequestTarget } from "./request-target.js";

/** The values of a request that configuration text can name. */
export class Variables {
  /** By `set`, without the dollar sign. */
  readonly set = new Map<string, string>();
  /** Of the last pattern that matched. */
  groups: readonly (string | undefined)[] = [];
  path: string;
  query: string;
  /** `$request_id`: 32 hexadecimal digits. */
  readonly requestId: string;

  constructor(
    readonly state: PlaneState,
    readonly server: PlaneServer,
    readonly request: IncomingMessage,
    readonly target: RequestTarget,
    random: number,
  ) {
    this.path = target.path;
    this.query = target.query;
    this.requestId = Math.floor(random * 2 ** 24)
      .toString(16)
      .padStart(6, "0")
      .padEnd(32, "0");
  }

  /** `$name` and `${name}` of a text filled in. */
  fill(text: string): string {
    return text.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (_, braced?: string, bare?: string) => {
      // A digit is a group by itself: `$10` is group 1 and a zero.
      if (bare !== undefined && /^\d/.test(bare)) return (this.groups[Number(bare[0])] ?? "") + bare.slice(1);
      return this.read(braced ?? bare ?? "");
    });
  }

  read(name: string): string {
    const set = this.set.get(name);
    if (set !== undefined) return set;
    const map = this.state.maps.find(({ keyTo }) => keyTo === `$${name}`);
    if (map) return this.mapped(map);
    const { split } = this.state;
    if (split?.variable === `$${name}`) return chosenShare(split.shares);
    if (name.startsWith("http_")) return this.header(name.slice(5));
    if (name.startsWith("cookie_")) return cookie(this.header("cookie"), name.slice(7));
    if (name.startsWith("arg_")) return argument(this.query, name.slice(4));
    return this.fixed(name);
  }

  /** A pattern of a map gives its groups to the value, and to nothing else. */
  private mapped(map: PlaneMap): string {
    const { value, groups } = mapEntry(map, this.read(map.keyFrom.slice(1)));
    const before = this.groups;
    if (groups !== undefined) this.groups = groups;
    try {
      return this.fill(value);
    } finally {
      this.groups = before;
    }
  }

  /** The host as NGINX has it: from the target or the header, in lower case, without port and final dot. */
  host(): string {
    const absolute = /^https?:\/\/([^/?#]*)/i.exec(this.target.request)?.[1];
    const host = (absolute ?? this.header("host")).toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
    return host || this.server.names[0];
  }

  private header(name: string): string {
    const wanted = name.replaceAll("_", "-");
    const values: string[] = [];
    const { rawHeaders } = this.request;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (rawHeaders[i].toLowerCase() === wanted) values.push(rawHeaders[i + 1]);
    }
    return values.join(wanted === "cookie" ? "; " : ", ");
  }

  private fixed(name: string): string {
    const { socket, method = "", httpVersion } = this.request;
    const isTls = "encrypted" in socket;
    switch (name) {
      case "host":
        return this.host();
      case "uri":
      case "document_uri":
        return this.path;
      case "request_uri":
        return this.target.request;
      case "args":
      case "query_string":
        return this.query;
      case "is_args":
        return this.query === "" ? "" : "?";
      case "request_method":
        return method;
      case "scheme":
        return isTls ? "https" : "http";
      case "https":
        return isTls ? "on" : "";
      case "ssl_server_name":
        return (isTls && (socket as TLSSocket & { servername?: string | false }).servername) || "";
      case "remote_addr":
        return this.client();
      case "remote_port":
        return String(socket.remotePort);
      case "server_name":
        return this.server.names[0];
      case "server_port":
        return /:(\d+)$/.exec(this.server.listens[0])?.[1] ?? this.server.listens[0];
      case "server_protocol":
        return `HTTP/${httpVersion}`;
      case "content_type":
        return this.header("content-type");
      case "content_length":
        return this.header("content-length");
      case "request_id":
        return this.requestId;
      default:
        return "";
    }
  }

  /** The client's address, which a proxy on loopback may tell: `set_real_ip_from 127.0.0.1`, not recursive. */
  private client(): string {
    const told = this.header("x-forwarded-for").split(",").at(-1)?.trim();
    return told || (this.request.socket.remoteAddress ?? "");
  }
}

/** The value of a `map`: the very text, a host pattern, a regular expression, else its default. */
export function mapped(map: PlaneMap, key: string): string {
  return mapEntry(map, key).value;
}

/** `groups`: where a regular expression has found it. */
function mapEntry(
  { values, hostnames }: PlaneMap,
  key: string,
): { value: string; groups?: readonly (string | undefined)[] } {
  const wanted = key.toLowerCase();
  const find = (test: (from: string) => boolean) => values.find(({ valueFrom }) => test(valueFrom))?.valueTo;
  const exact = find((from) => from.toLowerCase() === wanted && from !== "default");
  if (exact !== undefined) return { value: exact };
  if (hostnames) {
    const labels = wanted.split(".");
    for (let i = 1; i < labels.length; i++) {
      const rest = labels.slice(i).join(".");
      const wildcard = find((from) => from.toLowerCase() === `*.${rest}` || from.toLowerCase() === `.${rest}`);
      if (wildcard !== undefined) return { value: wildcard };
    }
  }
  for (const { valueFrom, valueTo } of values) {
    if (!valueFrom.startsWith("~")) continue;
    const ignoreCase = valueFrom.startsWith("~*");
    const groups = pcrePattern(valueFrom.slice(ignoreCase ? 2 : 1), ignoreCase).exec(key);
    if (groups !== null) return { value: valueTo, groups };
  }
  return { value: find((from) => from === "default") ?? "" };
}

/** Not by the hash of its key: the first value that has everything, or else the first that has anything. */
function chosenShare(shares: Readonly<Record<string, number>>): string {
  return Object.entries(shares).find(([, percent]) => percent > 0)?.[0] ?? "";
}

function cookie(header: string, name: string): string {
  for (const part of header.split(/[;,] */)) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trimEnd().toLowerCase() === name.toLowerCase())
      return part.slice(at + 1).trimStart();
  }
  return "";
}

function argument(query: string, name: string): string {
  for (const part of query.split("&")) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).toLowerCase() === name.toLowerCase()) return part.slice(at + 1);
  }
  return "";
}
