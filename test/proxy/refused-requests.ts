/** Requests that every proxy refuses, as bytes on the wire. */
export const HOST = "shop.example.com";
export const GET = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n`;
export const POST = `POST / HTTP/1.1\r\nHost: ${HOST}\r\n`;
/** Follows each refused request: what must never be looked at as a request of its own. */
export const HIDDEN = `GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

/** Refused before the peer hears of the request. */
export const HEADS: [title: string, request: string, status: number][] = [
  ["two Host headers", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nHost: other.example.com\r\n\r\n`, 400],
  ["two equal Host headers", `GET / HTTP/1.1\r\nHost: ${HOST}\r\nhOST: ${HOST}\r\n\r\n`, 400],
  ["no Host header on HTTP/1.1", "GET / HTTP/1.1\r\nX-A: b\r\n\r\n", 400],
  ["an empty Host header", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400],
  ["a second Host header behind two thousand others", `${GET}${"a:\r\n".repeat(2100)}Host: evil\r\n\r\n`, 400],
  [
    "Content-Length, then Transfer-Encoding",
    `${POST}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG`,
    400,
  ],
  [
    "Transfer-Encoding, then Content-Length",
    `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n`,
    400,
  ],
  ["Transfer-Encoding: xchunked", `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding: chunked, identity", `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding: gzip, chunked", `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding: identity", `${POST}Transfer-Encoding: identity\r\n\r\n`, 400],
  ["an empty Transfer-Encoding", `${POST}Transfer-Encoding:\r\n\r\n`, 400],
  ["a quoted Transfer-Encoding", `${POST}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding behind a vertical tab", `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n`, 400],
  ["Transfer-Encoding before a space and a colon", `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`, 400],
  ["two Transfer-Encodings", `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`, 400],
  [
    "Transfer-Encoding with HTTP/1.0",
    `POST / HTTP/1.0\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    400,
  ],
  ["two different Content-Lengths", `${POST}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`, 400],
  ["two equal Content-Lengths", `${POST}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`, 400],
  ["a list of Content-Lengths", `${POST}Content-Length: 3, 3\r\n\r\nabc`, 400],
  ["a signed Content-Length", `${POST}Content-Length: +3\r\n\r\nabc`, 400],
  ["a negative Content-Length", `${POST}Content-Length: -3\r\n\r\nabc`, 400],
  ["a hexadecimal Content-Length", `${POST}Content-Length: 0x3\r\n\r\nabc`, 400],
  ["a Content-Length beyond 64 bits", `${POST}Content-Length: 99999999999999999999\r\n\r\nabc`, 400],
  ["a folded header line", `${GET}X-A: b\r\n c\r\n\r\n`, 400],
  ["a folded Host header", `GET / HTTP/1.1\r\nHost: a\r\n ${HOST}\r\n\r\n`, 400],
  ["a space before the first header", `GET / HTTP/1.1\r\n Host: evil\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a bare CR in a header value", `${GET}X-A: b\rX-B: c\r\n\r\n`, 400],
  ["a bare CR after the request line", `GET / HTTP/1.1\rHost: ${HOST}\r\n\r\n`, 400],
  ["a bare LF after the request line", `GET / HTTP/1.1\nHost: ${HOST}\n\n`, 400],
  ["NUL in a header value", `${GET}X-A: b\0c\r\n\r\n`, 400],
  ["NUL in a header name", `${GET}X\0A: b\r\n\r\n`, 400],
  ["NUL in the target", `GET /a\0b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a control character in a header value", `${GET}X-A: b\x01c\r\n\r\n`, 400],
  ["a space before the colon of a header", `GET / HTTP/1.1\r\nHost : ${HOST}\r\n\r\n`, 400],
  ["a header without a colon", `${GET}nonsense\r\n\r\n`, 400],
  ["a header without a name", `${GET}: x\r\n\r\n`, 400],
  ["a space in the target", `GET /a b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["an unknown method", `FOO / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["an absolute target with another host", `GET http://evil.example.com/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a path that leads out of the root", `GET /../x HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["NUL in the path, escaped", `GET /a%00b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a bad escape in the path", `GET /a%zz HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400],
  ["a host that can't be one", `GET / HTTP/1.1\r\nHost: a"b\r\n\r\n`, 400],
  ["TRACE", `TRACE / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
  ["CONNECT", `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 405],
  ["an unknown expectation", `${GET}Expect: a-cake\r\n\r\n`, 417],
  ["HTTP/2.0 in a request line", `GET / HTTP/2.0\r\nHost: ${HOST}\r\n\r\n`, 505],
  ["HTTP/0.9", "GET /\r\n\r\n", 505],
  ["a target beyond 8 KiB", `GET /${"a".repeat(8192)} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 414],
  ["a head beyond 32 KiB", `${GET}X-A: ${"a".repeat(33 * 1024)}\r\n\r\n`, 431],
];

/** The head is fine, the body is not: the peer may have the head, never a whole request. */
export const BODIES: [title: string, body: string][] = [
  ["a chunk size that is not hexadecimal", "zz\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size with 0x", "0x3\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size beyond 64 bits", "fffffffffffffffff\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size with a space behind it", "3 \r\nabc\r\n0\r\n\r\n"],
  ["a negative chunk size", "-3\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size that ends with a bare LF", "3\nabc\r\n0\r\n\r\n"],
  ["a chunk extension with a bare LF", "3;a\nb\r\nabc\r\n0\r\n\r\n"],
  ["a Content-Length among the trailers", "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n"],
  ["a chunk that is longer than its size", "3\r\nabcXX0\r\n\r\n"],
];
