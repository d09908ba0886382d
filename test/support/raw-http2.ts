import { connect } from "node:tls";

const HEADERS = 1;
const SETTINGS = 4;
const END_STREAM = 1;
const END_HEADERS = 4;
const FRAME_HEAD = 9;
const FRAME_DATA = 0;
const FRAME_RESET = 3;

/** What came back on the one stream. */
export interface Http2Answer {
  /** Frames with the head of an answer. */
  heads: number;
  body: string;
  reset: boolean;
}

/**
 * One request over HTTP/2, on a connection of its own, with any headers: Node's own client refuses those that HTTP/2 forbids.
 * Resolves when the stream or the connection has ended.
 */
export function askHttp2(port: number, headers: readonly [string, string][], body?: string): Promise<Http2Answer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    const answer: Http2Answer = { heads: 0, body: "", reset: false };
    let rest = Buffer.alloc(0);
    const settle = () => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("error", reject);
    socket.on("close", settle);
    socket.on("secureConnect", () => {
      const block = Buffer.concat(
        headers.map(([name, value]) => Buffer.concat([literal(name), literal(value, false)])),
      );
      socket.write(
        Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0, Buffer.alloc(0))]),
      );
      socket.write(frame(HEADERS, END_HEADERS | (body === undefined ? END_STREAM : 0), 1, block));
      if (body !== undefined) socket.write(frame(FRAME_DATA, END_STREAM, 1, Buffer.from(body)));
    });
    socket.on("data", (part) => {
      rest = Buffer.concat([rest, part]);
      while (rest.length >= FRAME_HEAD && rest.length >= FRAME_HEAD + rest.readUIntBE(0, 3)) {
        const size = rest.readUIntBE(0, 3);
        const [type, flags] = [rest[3], rest[4]];
        const ours = rest.readUInt32BE(5) === 1;
        const payload = rest.subarray(FRAME_HEAD, FRAME_HEAD + size);
        rest = rest.subarray(FRAME_HEAD + size);
        if (!ours) continue;
        if (type === HEADERS) answer.heads++;
        if (type === FRAME_DATA) answer.body += payload.toString("latin1");
        if (type === FRAME_RESET) answer.reset = true;
        if (type === FRAME_RESET || ((type === HEADERS || type === FRAME_DATA) && (flags & END_STREAM) !== 0))
          return settle();
      }
    });
  });
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A string of HPACK (RFC 7541 5.2) as it is; of a name, with what begins a field that is put into no table. */
function literal(text: string, isName = true): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length >= 127) throw new RangeError("too long for one byte");
  return Buffer.concat([Buffer.from(isName ? [0, bytes.length] : [bytes.length]), bytes]);
}
