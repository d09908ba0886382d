/** How NGINX reads and writes paths; texts hold a byte in each character. */

export interface RequestTarget {
  /** As it came. */
  request: string;
  /** Decoded, with single slashes and without dot segments: `$uri`. */
  path: string;
  /** `$args`. */
  query: string;
  /** Whether something in the path was encoded. */
  wasEncoded: boolean;
}

/** Reads a target in origin form; undefined where NGINX answers 400. */
export function readTarget(request: string): RequestTarget | undefined {
  const origin = /^https?:\/\/[^/?#]*/i.exec(request)?.[0];
  const target = origin === undefined ? request : request.slice(origin.length) || "/";
  if (!target.startsWith("/")) return undefined;
  const [written] = target.split("#");
  const mark = written.indexOf("?");
  const encoded = mark < 0 ? written : written.slice(0, mark);
  if (/%(?![\da-f]{2})/i.test(encoded)) return undefined;
  const decoded = encoded.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  if (decoded.includes("\0")) return undefined;
  const path = normalised(decoded);
  if (path === undefined) return undefined;
  return { request, path, query: mark < 0 ? "" : written.slice(mark + 1), wasEncoded: encoded.includes("%") };
}

function normalised(path: string): string | undefined {
  const segments: string[] = [];
  const parts = path.split("/").slice(1);
  for (const [i, part] of parts.entries()) {
    const isLast = i === parts.length - 1;
    if (part === "..") {
      if (segments.length === 0) return undefined;
      segments.pop();
    } else if (part !== "." && part !== "") segments.push(part);
    if (isLast && ["", ".", ".."].includes(part)) segments.push("");
  }
  return `/${segments.join("/")}`.replace(/^\/+/, "/");
}

/** `ngx_escape_uri` for paths. */
export function escapePath(path: string): string {
  return path.replaceAll(
    /[\x00-\x20"#%<>?\\^`{|}\x7f-\xff]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}

/** A text as the bytes of its UTF-8, a character each. */
export function bytesOf(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
