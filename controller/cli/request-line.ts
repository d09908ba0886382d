import type { RequestInput } from "../../core-wasm/binding/decision.js";

/** A request as `match` takes it, on the command line or as a line of JSON. */
export interface RequestSpec {
  method?: string;
  url: string;
  headers?: Record<string, string>;
  client?: string;
}

/** Text as the bytes it has on the wire, one character a byte. */
function bytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/**
 * The request that a spec stands for. The URL is taken as it is written: nothing of it is decoded, normalised or escaped.
 * A Host header takes the place of the URL's host. Throws an Error that says what is wrong.
 */
export function parseRequestSpec(spec: RequestSpec): RequestInput {
  const parts = /^(https?):\/\/([^/?#]*)(.*)$/is.exec(spec.url);
  if (!parts) throw new Error(`"${spec.url}" is no URL of the form http://host/path or https://host/path`);
  const [, scheme, authority, rest] = parts;
  const headers = new Map<string, string>();
  for (const [name, value] of Object.entries(spec.headers ?? {})) {
    const lower = name.toLowerCase();
    const before = headers.get(lower);
    headers.set(
      lower,
      before === undefined ? bytes(value) : `${before}${lower === "cookie" ? "; " : ", "}${bytes(value)}`,
    );
  }
  const host = headers.get("host") ?? bytes(authority);
  headers.set("host", host);
  return {
    method: spec.method ?? "GET",
    scheme: scheme.toLowerCase() === "https" ? "https" : "http",
    host,
    target: bytes(rest.startsWith("/") ? rest : `/${rest}`),
    protocol: "HTTP/1.1",
    clientAddress: spec.client ?? "127.0.0.1",
    clientPort: 0,
    header: (name) => headers.get(name),
  };
}

/** Reads one line of a requests file. Throws an Error that says what is wrong. */
export function parseRequestLine(line: string): RequestInput {
  const value: unknown = JSON.parse(line);
  if (typeof value !== "object" || value === null) throw new Error("not a JSON object");
  const { method, url, headers, client } = value as Record<string, unknown>;
  if (typeof url !== "string") throw new Error("url is missing or no text");
  if (method !== undefined && typeof method !== "string") throw new Error("method is no text");
  if (client !== undefined && typeof client !== "string") throw new Error("client is no text");
  const fields: Record<string, string> = {};
  if (headers !== undefined) {
    if (typeof headers !== "object" || headers === null) throw new Error("headers is no object");
    for (const [name, field] of Object.entries(headers)) {
      if (typeof field !== "string") throw new Error(`header ${name} is no text`);
      fields[name] = field;
    }
  }
  return parseRequestSpec({ url, method, headers: fields, client });
}
