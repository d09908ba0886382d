/** Header maps as proxy-wasm has them on the wire: u32 count, u32 lengths of each name and value, each with a zero byte. */

/** Names and values are byte strings. */
export function encodeHeaderMap(pairs: readonly (readonly [string, string])[]): Buffer {
  const head = Buffer.alloc(4 + pairs.length * 8);
  head.writeUInt32LE(pairs.length, 0);
  for (const [i, [name, value]] of pairs.entries()) {
    head.writeUInt32LE(name.length, 4 + i * 8);
    head.writeUInt32LE(value.length, 8 + i * 8);
  }
  return Buffer.concat([head, Buffer.from(pairs.map(([name, value]) => `${name}\0${value}\0`).join(""), "latin1")]);
}

export function decodeHeaderMap(bytes: Buffer): [string, string][] {
  if (bytes.length === 0) return [];
  let at = 4 + bytes.readUInt32LE(0) * 8;
  return Array.from({ length: bytes.readUInt32LE(0) }, (_, i): [string, string] => {
    const next = (size: number) => {
      const text = bytes.toString("latin1", at, at + size);
      at += size + 1;
      return text;
    };
    return [next(bytes.readUInt32LE(4 + i * 8)), next(bytes.readUInt32LE(8 + i * 8))];
  });
}
