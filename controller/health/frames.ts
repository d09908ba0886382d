/** Messages on a byte stream: u32 length, big endian, then so many bytes of JSON. */

const LENGTH_BYTES = 4;

/** Bytes of a message that are read at most. */
export const MOST_FRAME = 16 * 1024 * 1024;

/** What came is no frame. The connection is to be closed: there is no way to find the next one. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** A message as it goes over a stream. */
export function frameOf(message: unknown): Buffer {
  const text = JSON.stringify(message);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + Buffer.byteLength(text));
  frame.writeUInt32BE(frame.length - LENGTH_BYTES);
  frame.write(text, LENGTH_BYTES);
  return frame;
}

/** Puts messages together from the parts of a stream, in which they may be cut anywhere. */
export class FrameReader {
  #parts: Buffer[] = [];
  #size = 0;
  /** Bytes of a message that are taken at most; more is refused before anything is kept. */
  #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** Changes the limit, once the other side is known. */
  allow(most: number): void {
    this.#most = most;
  }

  /** The messages that `part` completes, one by one. Throws FrameError for a length beyond the limit or bytes that are no JSON. */
  *push(part: Buffer): Generator<unknown> {
    this.#parts.push(part);
    this.#size += part.length;
    for (;;) {
      if (this.#size < LENGTH_BYTES) return;
      const length = this.#join(LENGTH_BYTES).readUInt32BE();
      if (length > this.#most) throw new FrameError(`a message of ${length} bytes; the limit is ${this.#most}`);
      const end = LENGTH_BYTES + length;
      if (this.#size < end) return;
      const bytes = this.#join(end);
      this.#parts = bytes.length > end ? [bytes.subarray(end)] : [];
      this.#size -= end;
      yield parse(bytes.toString("utf8", LENGTH_BYTES, end));
    }
  }

  /** What is there as one buffer, if the first part is shorter than `wanted`: parts are joined once for each message. */
  #join(wanted: number): Buffer {
    if (this.#parts[0].length < wanted) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0];
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new FrameError("a message is no JSON");
  }
}
