import type { IncomingMessage } from "node:http";

/** Why a request head is refused; the number is the status of the answer. */
export type HeadRefusal = { status: 400 | 405 | 414 | 505; reason: string };

/**
 * Checks what Node's strict parser lets pass: two Host headers or none, a Transfer-Encoding that is not exactly
 * `chunked` or comes with HTTP/1.0, other HTTP versions, overlong targets, and the methods that only make sense
 * towards a forward proxy or a debugger. Everything else of the list in RFC 9112 11.2 (both lengths, bad chunk
 * sizes, obs-fold, bare CR, NUL) is refused by the parser itself; test/proxy/refusals.test.ts holds both halves.
 */
export function refuseHead(request: IncomingMessage, maxTargetLength: number): HeadRefusal | undefined {
  const version = request.httpVersion;
  if (version !== "1.1" && version !== "1.0") return { status: 505, reason: "HTTP version" };
  const method = request.method;
  if (method === "TRACE" || method === "CONNECT") return { status: 405, reason: "method" };
  if ((request.url as string).length > maxTargetLength) return { status: 414, reason: "target too long" };
  const raw = request.rawHeaders;
  let hosts = 0;
  let host = "";
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    if (name.length === 4 && name.toLowerCase() === "host") {
      hosts++;
      host = raw[i + 1];
    } else if (name.length === 17 && name.toLowerCase() === "transfer-encoding") {
      if (raw[i + 1].toLowerCase() !== "chunked") return { status: 400, reason: "transfer encoding" };
      if (version === "1.0") return { status: 400, reason: "transfer encoding with HTTP/1.0" };
    }
  }
  if (hosts > 1) return { status: 400, reason: "two Host headers" };
  if (version === "1.1" && host === "") return { status: 400, reason: "no Host header" };
  return undefined;
}

/** Status for what Node's parser refused, by the error's code; undefined if there is nobody left to answer. */
export function statusOfParserError(code: string | undefined): 400 | 408 | 431 | undefined {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return 431;
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return 408;
    case "ECONNRESET":
    case "EPIPE":
    case "ETIMEDOUT":
    case "HPE_INVALID_EOF_STATE":
      return undefined;
    default:
      return 400;
  }
}
