// Takes a WebAssembly module apart into its functions and puts it together again with them in another order. Plain
// JavaScript, because the build runs it. Binary format: WebAssembly Core Specification 2.0, chapter 5. Modules with
// imports, tables or a start function are refused: the core has none, and they would carry function indices too.

const CUSTOM = 0;
const TYPE = 1;
const FUNCTION = 3;
const EXPORT = 7;
const CODE = 10;
/** Further sections that hold no index of a function: memories, globals, data count, data. */
const PLAIN = [5, 6, 11, 12];
const HEADER = 8;
const CALL = 0x10;
const LOCAL_GET = 0x20;
const LOCAL_TEE = 0x22;
const EXPORT_FUNCTION = 0;
const FUNCTION_NAMES = 1;

/** @param {Uint8Array} bytes */
function reader(bytes, at = 0) {
  return {
    get at() {
      return at;
    },
    byte: () => bytes[at++],
    /** An integer in LEB128, unsigned; of signed ones only the length is of use. */
    u32() {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = bytes[at++];
        value |= (byte & 127) << shift;
        if (byte < 128) return value >>> 0;
      }
    },
    take(length) {
      at += length;
      return bytes.subarray(at - length, at);
    },
  };
}

/** An unsigned integer in LEB128. */
function leb(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return Uint8Array.from([...bytes, value]);
}

/** Skips the immediates of the instruction `opcode`, which is no call. */
function skipImmediates(opcode, code) {
  if ((opcode >= 0x28 && opcode <= 0x3e) || opcode === 0x11) {
    code.u32();
    code.u32();
  } else if (
    (opcode >= 0x20 && opcode <= 0x24) ||
    [0x02, 0x03, 0x04, 0x0c, 0x0d, 0x3f, 0x40, 0x41, 0x42].includes(opcode)
  ) {
    code.u32();
  } else if (opcode === 0x0e) {
    for (let left = code.u32() + 1; left > 0; left--) code.u32();
  } else if (opcode === 0x43 || opcode === 0x44) {
    code.take(opcode === 0x43 ? 4 : 8);
  } else if (opcode === 0x1c) {
    code.take(code.u32());
  } else if (opcode === 0xfc) {
    const operation = code.u32();
    // memory.copy names two memories, memory.fill one; saturating conversions nothing.
    if (operation === 10) code.take(2);
    else if (operation === 11) code.take(1);
    else if (operation > 7) throw new Error(`the instruction 0xfc ${operation} is not known here`);
  } else if (opcode > 0xc4 || (opcode >= 0x06 && opcode <= 0x0a) || (opcode >= 0x12 && opcode <= 0x19)) {
    throw new Error(`the instruction 0x${opcode.toString(16)} is not known here`);
  }
}

/**
 * Takes a body apart: pieces of code, between each two of them the index of the function that is called; the counts of
 * locals of each type in a row, parameters aside; and where in the body a local is named (by one byte: no function has
 * more than 128).
 */
function readBody(body) {
  const code = reader(body);
  const groups = Array.from({ length: code.u32() }, () => [code.u32(), code.byte()][0]);
  const pieces = [];
  const callees = [];
  const uses = [];
  let start = 0;
  while (code.at < body.length) {
    const opcode = code.byte();
    if (opcode >= LOCAL_GET && opcode <= LOCAL_TEE) {
      uses.push(code.at);
      if (code.u32() > 127) throw new Error("a function with more than 128 locals");
      continue;
    }
    if (opcode !== CALL) {
      skipImmediates(opcode, code);
      continue;
    }
    pieces.push(body.subarray(start, code.at));
    callees.push(code.u32());
    start = code.at;
  }
  pieces.push(body.subarray(start));
  return { body, pieces, callees, groups, uses };
}

/**
 * Numbers the locals of a function anew: those of one type in a row are dealt out in an order that `key` names, 0 for
 * the order they have. Any order means the same; they differ in what gzip finds to repeat.
 */
function renumber({ body, pieces, groups, uses, parameters }, key) {
  if (key === 0) return pieces;
  const place = new Map();
  let first = parameters;
  for (const count of groups) {
    const locals = Array.from({ length: count }, (_, i) => first + i);
    locals.sort((a, b) => scatter(a, key) - scatter(b, key) || a - b);
    locals.forEach((local, i) => {
      place.set(local, first + i);
    });
    first += count;
  }
  const numbered = Uint8Array.from(body);
  for (const at of uses) numbered[at] = place.get(body[at]) ?? body[at];
  // The pieces are views of the body, and keep their places.
  return pieces.map((piece) => {
    const start = piece.byteOffset - body.byteOffset;
    return numbered.subarray(start, start + piece.length);
  });
}

/** A number that seems random but depends on its arguments alone. */
function scatter(local, key) {
  return (Math.imul(local * 2654435761 + key * 40503, 2246822519) >>> 7) % 9973;
}

/** Number of parameters of each type of the type section, which holds function types of number types only. */
function readParameterCounts(section) {
  const input = reader(section);
  return Array.from({ length: input.u32() }, () => {
    input.byte();
    const parameters = input.u32();
    input.take(parameters);
    input.take(input.u32());
    return parameters;
  });
}

/** Names of functions by index, from the custom section `name`. */
function readNames(section) {
  const names = [];
  const text = new TextDecoder();
  const input = reader(section);
  if (text.decode(input.take(input.u32())) !== "name") return names;
  while (input.at < section.length) {
    const kind = input.byte();
    const part = reader(input.take(input.u32()));
    if (kind !== FUNCTION_NAMES) continue;
    for (let left = part.u32(); left > 0; left--) {
      const index = part.u32();
      names[index] = text.decode(part.take(part.u32()));
    }
  }
  return names;
}

/**
 * Reads a module. `functions` has, for each function, its name (where the module has a name section), type, pieces and
 * callees. `write(order)` gives the module without custom sections, with the functions in `order` (a permutation of
 * their indices), each with its locals numbered by the key that `keys` has for it.
 *
 * @param {Uint8Array} bytes
 */
export function readModule(bytes) {
  const input = reader(bytes, HEADER);
  const sections = [];
  let names = [];
  let types = [];
  let parameterCounts = [];
  let bodies = [];
  let exports = [];
  while (input.at < bytes.length) {
    const id = input.byte();
    const content = input.take(input.u32());
    const section = reader(content);
    if (id === CUSTOM) {
      const found = readNames(content);
      if (found.length > 0) names = found;
      continue;
    }
    sections.push({ id, content });
    if (id === TYPE) parameterCounts = readParameterCounts(content);
    else if (id === FUNCTION) types = Array.from({ length: section.u32() }, () => section.u32());
    else if (id === CODE) bodies = Array.from({ length: section.u32() }, () => section.take(section.u32()));
    else if (id === EXPORT) {
      exports = Array.from({ length: section.u32() }, () => {
        const from = section.at;
        section.take(section.u32());
        return { name: content.subarray(from, section.at), kind: section.byte(), index: section.u32() };
      });
    } else if (!PLAIN.includes(id)) throw new Error(`a module with a section ${id} cannot be put in another order`);
  }
  const functions = bodies.map((body, index) => ({
    name: names[index],
    type: types[index],
    parameters: parameterCounts[types[index]],
    ...readBody(body),
  }));

  /**
   * @param {readonly number[]} order
   * @param {readonly number[]} [keys] by index of the function
   */
  function write(order, keys = []) {
    const placed = new Map(order.map((index, place) => [index, leb(place)]));
    const content = {
      [FUNCTION]: () => [leb(order.length), ...order.map((index) => leb(functions[index].type))],
      [CODE]: () => [
        leb(order.length),
        ...order.flatMap((index) => bodyOf(functions[index], keys[index] ?? 0, placed)),
      ],
      [EXPORT]: () => [
        leb(exports.length),
        ...exports.flatMap(({ name, kind, index }) => [
          name,
          Uint8Array.of(kind),
          kind === EXPORT_FUNCTION ? placed.get(index) : leb(index),
        ]),
      ],
    };
    const parts = [bytes.subarray(0, HEADER)];
    for (const section of sections) {
      const pieces = content[section.id]?.() ?? [section.content];
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
      parts.push(Uint8Array.of(section.id), leb(length), ...pieces);
    }
    return Buffer.concat(parts);
  }
  return { functions, write };
}

/** A body with the new indices of what it calls, after its length. */
function bodyOf(definition, key, placed) {
  const { callees } = definition;
  const parts = renumber(definition, key).flatMap((piece, i) =>
    i < callees.length ? [piece, placed.get(callees[i])] : [piece],
  );
  return [leb(parts.reduce((sum, part) => sum + part.length, 0)), ...parts];
}
