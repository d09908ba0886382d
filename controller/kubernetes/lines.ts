/** The lines of a byte stream, without their ends; what stands after the last end is given up. Throws beyond `max` bytes. */
export async function* splitLines(chunks: AsyncIterable<Buffer>, max: number): AsyncGenerator<string, void, undefined> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end));
      from = end + 1;
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      length = 0;
      if (line !== "") yield line;
    }
    length += chunk.length - from;
    if (length > max) throw new Error(`a line of the API server is longer than ${max} bytes`);
    if (from < chunk.length) parts.push(chunk.subarray(from));
  }
}
