/** Decides over the numeric interface and checks that what the core says is inside what it may speak of. */
import type { Random } from "../support/random.js";
import { NEED_SIZE, type RawTable, WORDS } from "../support/raw-core.js";

const NEED = 1;
const E_STATE = -11;
const E_LIMIT = -8;
const ROUNDS = 300;
const NONE = 0xffffffff;
/** Number of peers in the header of a peer set image. */
const PEER_COUNT = 24;

const VALUES = ["", "yes", "abc", "session=abc; q=1", "aabbc", "\r\n\0", "x".repeat(200)];
const REGIONS = new WeakMap<RawTable, number[]>();

/** Addresses of the values in the memory of a table, written once. */
function valuesOf(raw: RawTable): number[] {
  let addresses = REGIONS.get(raw);
  if (!addresses) {
    addresses = VALUES.map((value) => {
      const at = raw.exports.alloc(value.length);
      raw.write(at, value);
      return at;
    });
    REGIONS.set(raw, addresses);
  }
  return addresses;
}

/**
 * Decides a request with random header values, and renders the header changes. Undefined if all is as it may be, else
 * what is not: a status, an action, an index, or an address outside the buffers and the shard of the decision.
 */
export function checkedDecision(raw: RawTable, random: Random, host: string, target: string): string | undefined {
  const { exports, context } = raw;
  const addresses = valuesOf(raw);
  const memory = new DataView(exports.memory.buffer);
  const word = (offset: number) => memory.getUint32(context + offset, true);
  let status = raw.route(host, target, random.below(2), random.word());
  let rounds = 0;
  for (; status === NEED && rounds < ROUNDS; rounds++) {
    const count = word(WORDS.needCount);
    if (count < 1 || count > 160) return `${count} values are asked for`;
    for (let i = 0; i < count; i++) {
      const need = word(WORDS.needs) + NEED_SIZE * i;
      const value = random.below(VALUES.length + 1);
      if (value === VALUES.length) continue;
      memory.setUint32(need + 4, addresses[value], true);
      memory.setInt32(need + 8, VALUES[value].length, true);
    }
    status = exports.resume(context);
  }
  if (rounds === ROUNDS) return "it asks without end";
  if (status !== 0) return `status ${status}`;
  const action = word(WORDS.action);
  if (action < 1 || action > 3) return `action ${action}`;
  const shard = word(WORDS.shard);
  const shardEnd = shard ? shard + memory.getUint32(shard + 16, true) : 0;
  const inside = (offset: number, lengthOffset: number, start: number, end: number) =>
    word(offset) >= start && word(offset) + word(lengthOffset) <= end;
  const input = word(WORDS.input);
  const output = word(WORDS.output);
  if (
    word(WORDS.textLength) > 0 &&
    !inside(WORDS.text, WORDS.textLength, input, input + word(WORDS.inputCapacity)) &&
    !inside(WORDS.text, WORDS.textLength, output, output + word(WORDS.outputCapacity))
  ) {
    return "the text is in no buffer";
  }
  if (action === 3 && word(WORDS.typeLength) > 0 && !inside(WORDS.type, WORDS.typeLength, shard, shardEnd)) {
    return "the content type is outside the shard";
  }
  if (word(WORDS.settingsLength) > 0 && !inside(WORDS.settings, WORDS.settingsLength, shard, shardEnd)) {
    return "the settings are outside the shard";
  }
  const route = word(WORDS.route);
  if (shard && route !== NONE && route >= memory.getUint32(shard + 32, true)) return `route ${route}`;
  if (action === 1) {
    const peers = word(WORDS.peers);
    if (word(WORDS.peer) >= memory.getUint32(peers + PEER_COUNT, true)) return `peer ${word(WORDS.peer)}`;
    if (memory.getUint8(word(WORDS.text)) !== 0x2f) return "the target does not begin with a slash";
  }
  for (let i = 0; i < 20; i++) {
    const size = exports.render_setting(context, i);
    if (size === E_STATE) break;
    if (size < 0 && size !== E_LIMIT) return `setting ${i}: status ${size}`;
    const rendered = word(WORDS.rendered);
    if (size > 0 && (rendered < output || rendered + size > output + word(WORDS.outputCapacity))) {
      return `setting ${i} is outside the output`;
    }
  }
  return undefined;
}
