/** Contestants under the same load, in rounds in which they take turns. */
import { ask } from "../../test/support/http-client.js";
import { median } from "../measure.js";
import type { Contestant } from "./contestants.js";
import { cpuOf, memoryOf, pin } from "./processes.js";
import { addressPrefix, CONDITION_HEADER, type Request } from "./site.js";
import type { Wrk } from "./wrk.js";

const ROUNDS = 25;
const SECONDS = 1;
/** Requests of which each answer is looked at before anything is measured. */
const CHECKED = 300;

/** What one contestant was found to take. */
export interface Taken {
  /** Microseconds of processor time for each request, of all processes that serve; the median of the rounds. */
  cpu: number;
  /** Requests that one core can carry in a second, by that time. */
  perCore: number;
  /** Requests a second by the clock, the median of the rounds; what limits them may be the load. */
  perSecond: number;
  /** MB that are resident, of all processes that serve, after the load. */
  memory: number;
  /** What the medians are of, one for each round; rounds of the same place are those of the same time. */
  rounds: { cpu: number[]; perSecond: number[] };
}

/**
 * How many times the figure of the other one ours is: the median over the rounds of the ratio in each. A machine that is slower for a
 * while is so for all contestants of a round, so this varies far less than the ratio of two medians.
 */
export function roundRatio(ours: Taken, theirs: Taken, kind: "cpu" | "perCore" | "perSecond"): number {
  if (kind === "perCore") return 1 / roundRatio(ours, theirs, "cpu");
  return median(ours.rounds[kind].map((figure, round) => figure / theirs.rounds[kind][round]));
}

/** Throws where a contestant sends a request elsewhere than it should go. */
async function check(name: string, port: number, requests: readonly Request[]): Promise<void> {
  for (const { host, path, tenant, service } of requests.slice(0, CHECKED)) {
    const headers: Record<string, string> = tenant === undefined ? {} : { [CONDITION_HEADER]: tenant };
    const { status, body } = await ask(port, { host, path, headers });
    if (status !== 200 || !body.startsWith(addressPrefix(service))) {
      throw new Error(`${name} answers ${status} ${body.slice(0, 40)} to ${host}${path}`);
    }
  }
}

/** `processor`: the one that all contestants are tied to. The first round warms up and does not count. */
export async function measureRounds<Name extends string>(
  contestants: Record<Name, Contestant>,
  requests: readonly Request[],
  wrk: Wrk,
  processor: number,
): Promise<Record<Name, Taken>> {
  const names = Object.keys(contestants) as Name[];
  const cpu = new Map<Name, number[]>(names.map((name) => [name, []]));
  const perSecond = new Map<Name, number[]>(names.map((name) => [name, []]));
  const script = wrk.script(requests);
  for (const name of names) {
    pin(contestants[name].pids(), processor);
    await check(name, contestants[name].port, requests);
  }
  for (let round = 0; round <= ROUNDS; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      // Each comes first in one round and last in another.
      const name = names[(round + turn) % names.length];
      const { port } = contestants[name];
      const pids = contestants[name].pids();
      const before = cpuOf(pids);
      const report = await wrk.run(port, script, SECONDS);
      const used = cpuOf(pids) - before;
      if (round === 0) continue;
      cpu.get(name)?.push(used / 1000 / report.requests);
      perSecond.get(name)?.push(report.perSecond);
    }
  }
  const taken = names.map((name): [Name, Taken] => {
    const rounds = { cpu: cpu.get(name) ?? [], perSecond: perSecond.get(name) ?? [] };
    const used = median(rounds.cpu);
    const memory = memoryOf(contestants[name].pids());
    return [name, { cpu: used, perCore: 1e6 / used, perSecond: median(rounds.perSecond), memory, rounds }];
  });
  return Object.fromEntries(taken) as Record<Name, Taken>;
}
