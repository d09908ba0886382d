// Looks for the order of the core's functions in which the module is smallest when gzipped, and writes it to
// function-order.txt: gzip finds a repetition cheaper the nearer it is, and callees with an index below 128 take a byte
// less in each call. `npm run order-functions -- [ROUNDS]` goes on from the order that is there. What is worth keeping is
// committed; the build only applies it, so that it is the same everywhere. Linkers know such files as symbol orderings.
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { NAMED_CORE, ORDER_FILE, readOrder } from "./link.mjs";
import { readModule } from "./wasm-functions.mjs";

const LONGEST_RUN = 12;
const REPORT_EVERY = 1000;

/** Numbers from [0, limit), the same in each run (mulberry32). */
function seeded(seed) {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}

/** Moves a run of functions to another place. */
function moved(order, random) {
  const from = random(order.length);
  const rest = [...order];
  const run = rest.splice(from, 1 + random(1 + random(LONGEST_RUN)));
  rest.splice(random(rest.length + 1), 0, ...run);
  return rest;
}

const rounds = Number(process.argv[2] ?? 20_000);
const module = readModule(readFileSync(NAMED_CORE));
const size = (order) => gzipSync(module.write(order), { level: 9 }).length;
const random = seeded(rounds);
let best = readOrder(module);
let least = size(best);
const before = least;
for (let round = 1; round <= rounds; round++) {
  const order = moved(best, random);
  const bytes = size(order);
  if (bytes <= least) [best, least] = [order, bytes];
  if (round % REPORT_EVERY === 0) console.error(`${round} of ${rounds}: ${before} -> ${least} bytes`);
}
writeFileSync(ORDER_FILE, `${best.map((index) => module.functions[index].name).join("\n")}\n`);
