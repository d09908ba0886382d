/** Calls about memory, tables, contexts and requests. Each answers with what is wrong with the answer of the core, if anything. */
import { type Belongings, HUGE } from "./straying-belongings.js";
import { anyStatus, type Calls, E_POINTER, ends, judged, OK } from "./straying-verdicts.js";

export function tableCalls(my: Belongings): Calls {
  return {
    alloc: () => {
      const size = my.random.onceIn(20) ? my.anyNumber() : my.random.below(3000);
      // What would take all of the memory there is: not here.
      if (size >>> 0 > HUGE && size >>> 0 <= 1 << 30) return undefined;
      const at = my.exports.alloc(size);
      if (at && size >>> 0 > 1 << 30) return `alloc of ${size >>> 0} bytes gave ${at}`;
      my.given(at, size);
      return undefined;
    },
    free: () => {
      const many = my.blocks.size > 60;
      const at = many ? my.random.pick([...my.blocks.keys()]) : my.oneOf(my.blocks.keys());
      const supplied = Object.values(my.placed).some((list) => list.some((bytes) => bytes.at === at));
      if (supplied) return undefined;
      const known = my.blocks.has(at);
      const status = my.exports.free(at);
      if (status !== (known ? OK : E_POINTER)) return `free of ${known ? "a block" : "no block"} answered ${status}`;
      if (known) my.gone(at);
      return undefined;
    },
    memory_used: () => (my.exports.memory_used() > my.memorySize() ? "more is used than there is" : undefined),
    table_new: () => {
      if (my.tables.size < 5) my.tables.add(my.exports.table_new());
      return undefined;
    },
    table_free: () => {
      const table = my.random.onceIn(4) ? my.table() : my.anyNumber();
      return ends(my, "table", table, my.tables.has(table), my.exports.table_free(table), () => {
        my.tables.delete(table);
        for (const [context, owner] of [...my.contexts]) {
          if (owner !== table) continue;
          my.contexts.delete(context);
          my.past.push(context);
        }
      });
    },
    context_new: () => {
      const table = my.table();
      const size = () => (my.random.onceIn(8) ? my.anyNumber() : my.random.pick([0, 1, 64, 1000, 20_000]));
      const [input, output] = [size(), size()];
      const fits = input >>> 0 <= HUGE && output >>> 0 <= HUGE;
      if (my.contexts.size > 8 && fits) return undefined;
      const context = my.exports.context_new(table, input, output);
      if ((context !== 0) !== (my.tables.has(table) && fits)) return `context_new answered ${context}`;
      if (context) my.contexts.set(context, table);
      return undefined;
    },
    context_free: () => {
      const context = my.random.onceIn(3) ? my.context() : my.anyNumber();
      return ends(my, "context", context, my.contexts.has(context), my.exports.context_free(context), () =>
        my.contexts.delete(context),
      );
    },
    context_trace: () => {
      const context = my.context();
      return judged(my, "context", context, my.exports.context_trace(context, my.random.below(3)), [OK]);
    },
    shard_validate: () => anyStatus(my.exports.shard_validate(...my.bytes(my.placed.shards), my.flag())),
    shard_load: () => {
      const table = my.table();
      const status = my.exports.shard_load(table, ...my.bytes(my.placed.shards), my.flag());
      return my.tables.has(table) || status === E_POINTER ? anyStatus(status) : `a shard was loaded: ${status}`;
    },
    shard_remove: () => {
      const kind = my.random.onceIn(8) ? my.anyNumber() : my.random.below(6);
      return anyStatus(my.exports.shard_remove(my.table(), kind, ...my.bytes(my.placed.hosts)));
    },
    peers_load: () => anyStatus(my.exports.peers_load(my.table(), ...my.bytes(my.placed.peerSets))),
    peers_remove: () => anyStatus(my.exports.peers_remove(my.table(), ...my.bytes(my.placed.keys))),
    peers_find: () => {
      const image = my.exports.peers_find(my.table(), ...my.bytes(my.placed.keys));
      if (image) my.past.push(image);
      return undefined;
    },
    route: () => {
      const context = my.context();
      const request = my.writeRequest(context);
      const status = my.exports.route(context, ...request, my.random.below(2), my.random.word());
      return judged(my, "context", context, status, [OK, 1, E_POINTER]);
    },
    resume: () => {
      const context = my.context();
      my.fillIn(context);
      return judged(my, "context", context, my.exports.resume(context), [OK, 1, E_POINTER, -11]);
    },
    release_decision: () => {
      const context = my.context();
      return judged(my, "context", context, my.exports.release_decision(context), [OK]);
    },
    render_setting: () => {
      const context = my.context();
      const index = my.random.onceIn(4) ? my.anyNumber() : my.random.below(8);
      const length = my.exports.render_setting(context, index);
      return length >= 0 ? judged(my, "context", context, OK, [OK]) : judged(my, "context", context, length, [-8, -11]);
    },
    peer_pick: () => {
      const context = my.context();
      const [tried, count] = my.random.onceIn(5)
        ? [my.anyNumber(), my.anyNumber()]
        : [my.room(64), my.random.below(16)];
      // A long list of tokens is compared with each peer: that takes its time, and is no fault.
      if (count >>> 0 > 5000 && count >>> 0 < 1 << 22) return undefined;
      const key = my.bytes(my.placed.keys);
      const status = my.exports.peer_pick(context, ...key, my.flag(), my.anyNumber(), tried, count, my.random.word());
      return judged(my, "context", context, status, [OK, 2, E_POINTER, -11]);
    },
    peer_done: () => {
      const context = my.context();
      return judged(my, "context", context, my.exports.peer_done(context, my.token(), my.flag()), [OK]);
    },
    peer_state: () => {
      const state = my.random.onceIn(8) ? my.anyNumber() : my.random.below(5);
      return anyStatus(my.exports.peer_state(my.table(), my.token(), state, my.random.word()));
    },
    peer_status: () => {
      const context = my.context();
      const status = my.exports.peer_status(context, my.token());
      return status >= 0 ? judged(my, "context", context, OK, [OK]) : judged(my, "context", context, status, [-11]);
    },
  };
}
