/** Calls about peer sets, regexes and health, which need no table. Each answers with what is wrong with the answer of the core, if anything. */
import { type Belongings, HUGE } from "./straying-belongings.js";
import { anyAnswer, anyStatus, type Calls, E_POINTER, judged, OK } from "./straying-verdicts.js";

export function engineCalls(my: Belongings): Calls {
  return {
    ring_crc32: () => {
      my.exports.ring_crc32(my.random.word(), ...my.bytes(my.placed.hosts));
      return undefined;
    },
    peer_set_compile: () => {
      const old = my.random.onceIn(2) ? 0 : my.oneOf(my.peerSetImages);
      const result = my.room(8);
      const status = my.exports.peer_set_compile(...my.bytes(my.placed.sources), old, result);
      if (status === OK) {
        const image = my.view().getUint32(result, true);
        my.given(image, my.view().getUint32(result + 4, true));
        my.peerSetImages.add(image);
      }
      return anyStatus(status);
    },
    peer_set_validate: () => anyStatus(my.exports.peer_set_validate(...my.bytes(my.placed.peerSets))),
    peer_set_lookup: () => anyAnswer(my.exports.peer_set_lookup(my.peerSet(), my.random.word())),
    peer_set_lookup_key: () => anyAnswer(my.exports.peer_set_lookup_key(my.peerSet(), ...my.bytes(my.placed.keys))),
    peer_set_lookup_many: () => {
      const count = my.random.onceIn(4) ? my.anyNumber() : my.random.below(40);
      const hashes = my.room(Math.min(count >>> 0, HUGE) * 4);
      const out = my.random.onceIn(2) ? hashes : my.room(Math.min(count >>> 0, HUGE) * 4);
      return anyAnswer(my.exports.peer_set_lookup_many(my.peerSet(), hashes, count, out));
    },
    peer_set_position: () => anyAnswer(my.exports.peer_set_position(my.peerSet(), my.random.word())),
    peer_set_owner: () => anyAnswer(my.exports.peer_set_owner(my.peerSet(), my.anyNumber())),
    peer_set_walk: () => {
      const position = my.random.onceIn(2) ? my.random.below(200) : my.anyNumber();
      return anyAnswer(my.exports.peer_set_walk(my.peerSet(), position, ...my.bytes(my.placed.hosts)));
    },
    regex_compile: () => {
      const result = my.room(16);
      const status = my.exports.regex_compile(...my.bytes(my.placed.patterns), my.random.below(8), result);
      if (status === OK) {
        const image = my.view().getUint32(result, true);
        const length = my.view().getUint32(result + 4, true);
        my.given(image, length);
        my.regexes.set(image, length);
      }
      return anyStatus(status);
    },
    regex_validate: () => {
      const [image, length] = my.regex();
      const answer = my.exports.regex_validate(image, length);
      return answer === 0 || answer === 1 ? undefined : `regex_validate answered ${answer}`;
    },
    regex_scratch_size: () => {
      my.exports.regex_scratch_size(...my.regex());
      return undefined;
    },
    regex_match: () => {
      const [image, length] = my.regex();
      // Scratch and groups are written to: they lie in blocks of their own, or are no memory at all.
      const size = my.regexes.get(image) === length ? my.exports.regex_scratch_size(image, length) : 64;
      const [scratch, slots] = [my.room(Math.max(size, 1)), my.random.onceIn(2) ? 0 : my.room(80)];
      const answer = my.exports.regex_match(image, length, ...my.bytes(my.placed.hosts), scratch, slots);
      return answer === 0 || answer === 1 || answer === E_POINTER ? undefined : `regex_match answered ${answer}`;
    },
    regex_run: () => {
      const [image, length] = my.regex();
      const known = my.regexes.has(image) && length >= 20;
      const first = known && my.random.onceIn(2) ? my.view().getUint16(image + 18, true) : my.anyNumber();
      my.exports.regex_run(image, length, first, ...my.bytes(my.placed.hosts), my.flag());
      return undefined;
    },
    health_new: () => {
      const slots = my.random.onceIn(6) ? my.anyNumber() : my.random.below(200);
      const old = my.random.onceIn(2) ? 0 : my.tracker();
      const fits = slots >>> 0 <= 1 << 22;
      if (fits && slots > 100_000) return undefined;
      if (my.trackers.size > 6 && !old) return undefined;
      const tracker = my.exports.health_new(slots, old);
      if ((tracker !== 0) !== (fits && (!old || my.trackers.has(old)))) return `health_new answered ${tracker}`;
      if (!tracker) return undefined;
      if (old) my.gone(old);
      my.given(tracker, 16 + slots * 16);
      my.trackers.add(tracker);
      return undefined;
    },
    health_set: () => {
      const rule = my.random.onceIn(4) ? my.anyNumber() : my.random.pick([0, 0x10001, 0x20003]);
      const slot = my.random.onceIn(4) ? my.anyNumber() : my.random.below(100);
      const state = my.random.below(40);
      const tracker = my.tracker();
      const status = my.exports.health_set(tracker, slot, rule, my.random.below(1000), state, my.random.word());
      return judged(my, "tracker", tracker, status, [OK, -7, E_POINTER]);
    },
    health_state: () => {
      const tracker = my.tracker();
      const status = my.exports.health_state(tracker, my.random.onceIn(4) ? my.anyNumber() : my.random.below(100));
      return judged(my, "tracker", tracker, Math.min(status, OK), [OK, -11, E_POINTER]);
    },
    health_report: () => {
      const count = my.random.onceIn(4) ? my.anyNumber() : my.random.below(50);
      const results = my.random.onceIn(4) ? my.anyNumber() : my.room(Math.min(count >>> 0, HUGE) * 4);
      const out = my.room(Math.min(count >>> 0, HUGE) * 4);
      const tracker = my.tracker();
      const status = my.exports.health_report(tracker, results, count, my.random.word(), out);
      return judged(my, "tracker", tracker, Math.min(status, OK), [OK, E_POINTER]);
    },
  };
}
