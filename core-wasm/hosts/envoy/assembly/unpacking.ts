/** Blocks of LZ4 (packing.ts writes them). Whatever they hold, nothing outside of both areas is read or written. */

/** Unpacks `length` bytes to exactly `room` bytes. False if they are not what packs so many. */
export function unpack(from: usize, length: u32, to: usize, room: u32): bool {
  let end = from + length;
  let out = to;
  let outEnd = to + room;
  while (from < end) {
    let token = <u32>load<u8>(from++);
    let literals = token >> 4;
    if (literals == 15) {
      let byte: u32 = 255;
      while (byte == 255) {
        if (from >= end) return false;
        byte = load<u8>(from++);
        literals += byte;
      }
    }
    if (literals > <u32>(end - from) || literals > <u32>(outEnd - out)) return false;
    memory.copy(out, from, literals);
    from += literals;
    out += literals;
    if (from == end) return out == outEnd;
    if (end - from < 2) return false;
    let distance = <u32>load<u16>(from);
    from += 2;
    let match = token & 15;
    if (match == 15) {
      let byte: u32 = 255;
      while (byte == 255) {
        if (from >= end) return false;
        byte = load<u8>(from++);
        match += byte;
      }
    }
    match += 4;
    if (!distance || distance > <u32>(out - to) || match > <u32>(outEnd - out)) return false;
    repeat(out, distance, match);
    out += match;
  }
  return false;
}

/** Writes `length` bytes as they stand `distance` bytes before; these may be the ones that it writes. */
function repeat(out: usize, distance: u32, length: u32): void {
  let from = out - distance;
  let end = out + length;
  if (distance >= 8) {
    for (; end - out >= 8; out += 8, from += 8) store<u64>(out, load<u64>(from));
  }
  for (; out < end; out++, from++) store<u8>(out, load<u8>(from));
}
