/** Table `health`: results of checks into the rise/fall machine, and the cost of probing. */

import { loadCore } from "../../controller/core-file.js";
import type { Core } from "../../core-wasm/binding/core.js";
import { HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import { type Measured, measure } from "../measure.js";
import { Random } from "../random.js";
import type { Row } from "../report.js";
import { PlainTracker } from "./plain-tracker.js";
import { probingRows } from "./probing.js";

const TABLE = "health";
const PEERS = 10_000;
/** Batches, so that no pass sees the same results again at once. */
const BATCHES = 16;
const RULE = { passes: 2, fails: 3, slowStart: 30_000 };

/** One result for each peer, in an order of its own; one in fifty is a failure, and some peers fail for a while. */
function makeBatches(): { order: number[]; passed: boolean[] }[] {
  const random = new Random(9);
  const ill = new Uint8Array(PEERS);
  return Array.from({ length: BATCHES }, () => {
    const order = Array.from({ length: PEERS }, (_, i) => i);
    for (let i = PEERS - 1; i > 0; i--) {
      const j = random.next(i + 1);
      [order[i], order[j]] = [order[j], order[i]];
    }
    for (let i = 0; i < PEERS; i++) ill[i] = ill[i] > 0 ? ill[i] - 1 : random.next(400) === 0 ? 5 : 0;
    return { order, passed: order.map((peer) => ill[peer] === 0 && random.next(50) !== 0) };
  });
}

interface Case {
  name: string;
  /** Takes batch `index` in; the transitions as `peer state` where they are wanted, else only their number. */
  report: (index: number, now: number) => { peer: number; state: number }[];
}

const STATE_NUMBERS = { unchecked: 0, up: 1, down: 2, draining: 3, "slow-start": 4 };

function makeCases(core: Core): { cases: Case[]; free: () => void } {
  const batches = makeBatches();
  const ids = Array.from({ length: PEERS }, (_, i) => `10.20.${i >> 8}.${i & 255}:8080`);
  const numbers = new Map(ids.map((id, i) => [id, i]));
  const tracker = new HealthTracker(core);
  const byId = new PlainTracker<string>();
  const byNumber = new PlainTracker<number>();
  for (let i = 0; i < PEERS; i++) {
    if (tracker.add(RULE, 0) !== i) throw new Error("slots are not given in order");
    byId.add(ids[i], RULE.passes, RULE.fails, RULE.slowStart);
    byNumber.add(i, RULE.passes, RULE.fails, RULE.slowStart);
  }
  const words = batches.map(({ order, passed }) => Uint32Array.from(order, (peer, i) => peer * 2 + Number(passed[i])));
  const named = batches.map(({ order, passed }) => ({ keys: order.map((peer) => ids[peer]), passed }));
  const numbered = batches.map(({ order, passed }) => ({ keys: order, passed }));
  return {
    cases: [
      {
        name: "a result, core (a batch of 10,000, copied in)",
        report: (i, now) =>
          tracker.report(words[i], now).map(({ slot, state }) => ({ peer: slot, state: STATE_NUMBERS[state] })),
      },
      {
        name: "a result, Map of objects by number",
        report: (i, now) => byNumber.report(numbered[i], now).map(({ key, state }) => ({ peer: key, state })),
      },
      {
        name: "a result, Map of objects by address",
        report: (i, now) =>
          byId.report(named[i], now).map(({ key, state }) => ({ peer: numbers.get(key) ?? -1, state })),
      },
    ],
    free: () => tracker.free(),
  };
}

/** All have to see the same transitions, in the same order. */
function checkDecisions(cases: readonly Case[]): void {
  let transitions = 0;
  for (let round = 0; round < BATCHES * 3; round++) {
    const [first, ...others] = cases.map(({ report }) => JSON.stringify(report(round % BATCHES, round * 5000)));
    if (others.some((other) => other !== first)) throw new Error(`round ${round}: trackers disagree`);
    transitions += JSON.parse(first).length;
  }
  if (transitions < PEERS) throw new Error(`only ${transitions} transitions`);
}

/** Measures the table. Throws where trackers disagree, or where a probe fails. */
export async function healthTable(): Promise<Row[]> {
  const { cases, free } = makeCases(await loadCore());
  checkDecisions(cases);
  const times = measure(
    cases.map(({ name, report }): Measured => {
      let round = 0;
      return {
        name,
        operations: PEERS,
        pass: () => {
          round++;
          return report(round % BATCHES, round * 5000).length;
        },
      };
    }),
  );
  free();
  const [reference] = times.values();
  const rows = [...times].map(([name, ns], i): Row => {
    const goal = i === 1 ? ({ of: "ratio", atLeast: 4 } as const) : undefined;
    return { table: TABLE, name, ns, ratio: ns / reference, ...(goal === undefined ? {} : { goal }) };
  });
  return [...rows, ...(await probingRows(TABLE))];
}
