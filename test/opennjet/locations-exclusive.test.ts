import { expect, it } from "vitest";
import { locationKey } from "../../controller/proxies/opennjet/locations/location-set.js";
import { transition } from "../../controller/proxies/opennjet/locations/transition.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { randomHost, randomTable, randomTarget } from "../core/matching-cases.js";
import { makeRoutingTable } from "../support/core.js";
import { Random } from "../support/random.js";
import { request } from "../support/rules.js";
import { holding, locationsOfRules, type TriedRequest, tried, variablesOf } from "./locations-tried.js";

const TABLES = 150;
const REQUESTS = 60;

/** The id of the rule that the core decides by. */
function decider(table: readonly HostRules[]): { answer(one: TriedRequest): string; free(): void } {
  const routing = makeRoutingTable();
  for (const rules of table) routing.setHost(rules);
  return {
    answer({ host, target }) {
      const decision = routing.decide(request(target, { host }), 0);
      if (decision.action !== "return") return decision.action;
      return decision.body?.split("\n")[0] ?? String(decision.status);
    },
    free: () => routing.free(),
  };
}

/** The id that the body of a location begins with. */
function idOf(body: string): string {
  return /return 200 "(.*?)\\n/.exec(body)?.[1] ?? body;
}

function randomRequest(random: Random, table: readonly HostRules[]): TriedRequest {
  return { host: random.onceIn(30) ? "" : randomHost(random, table), target: randomTarget(random, table) };
}

it(`take what the core decides, one location at most for each request, over ${TABLES} random tables`, () => {
  const random = new Random(71);
  const seen = new Set<string>();
  for (let i = 0; i < TABLES; i++) {
    const table = randomTable(random);
    const core = decider(table);
    const locations = locationsOfRules(table);
    expect(new Set(locations.map(locationKey)).size).toBe(locations.length);
    for (let k = 0; k < REQUESTS; k++) {
      const one = randomRequest(random, table);
      const wanted = core.answer(one);
      const found = idOf(tried(locations, one));
      if (found !== wanted) expect(found, told(one, table)).toBe(wanted);
      const read = variablesOf(one);
      if (read !== undefined) expect(holding(locations, read).length, JSON.stringify(one)).toBeLessThanOrEqual(1);
      seen.add(
        /^(40[04])$/.test(wanted)
          ? wanted
          : wanted.startsWith("u")
            ? "unmatched"
            : wanted.endsWith("!")
              ? "match"
              : "route",
      );
    }
    core.free();
  }
  expect([...seen].sort()).toEqual(["400", "404", "match", "route", "unmatched"]);
});

it("take the same requests under the names of another edition, and are other locations", () => {
  const random = new Random(73);
  for (let i = 0; i < TABLES / 5; i++) {
    const table = randomTable(random);
    const locations = locationsOfRules(table);
    const others = locationsOfRules(table, undefined, 1 + random.below(20));
    const keys = new Set([...locations, ...others].map(locationKey));
    expect(keys.size).toBe(2 * locations.length);
    for (let k = 0; k < REQUESTS; k++) {
      const one = randomRequest(random, table);
      expect(tried(others, one)).toBe(tried(locations, one));
    }
  }
});

it("are each reached by the question for it, and by no other, whatever else is there", () => {
  const random = new Random(74);
  const kinds = new Set<string>();
  for (let i = 0; i < TABLES / 5; i++) {
    const table = randomTable(random);
    const changed = alike(random, table);
    const sets = [locationsOfRules(table), locationsOfRules(changed), locationsOfRules(table, undefined, 1)];
    const all = new Map(sets.flat().map((location) => [locationKey(location), location]));
    for (const { pattern } of table) kinds.add(pattern.kind);
    for (const location of all.values()) {
      const { host, path } = location.question;
      const read = variablesOf({ host, target: path });
      if (read === undefined) throw new Error(`no request can ask ${host}`);
      const conditional = holding([...all.values()], read);
      const patterns = [...all.values()].filter(({ rule, name }) => rule === "~" && new RegExp(name).test(path));
      expect(location.rule === "" ? conditional : [...conditional, ...patterns]).toEqual([location]);
    }
  }
  expect([...kinds].sort()).toEqual(["any", "default", "exact", "wildcard"]);
});

it("answer as before or as afterwards in each moment of a change, in whatever order they were created", () => {
  const random = new Random(72);
  let moments = 0;
  let changed = 0;
  for (let i = 0; i < TABLES / 3; i++) {
    const first = randomTable(random);
    const second = random.onceIn(2) ? randomTable(random) : alike(random, first);
    const [before, after] = [locationsOfRules(first), locationsOfRules(second)];
    const [old, next] = [decider(first), decider(second)];
    const there = new Map(random.shuffled(before).map((location) => [locationKey(location), location]));
    const { add, remove } = transition(there, random.shuffled(after));
    const requests = Array.from({ length: 12 }, () => randomRequest(random, random.onceIn(2) ? first : second));
    let state = random.shuffled(before);
    const look = () => {
      moments++;
      const order = random.onceIn(2) ? state : random.shuffled(state);
      for (const one of requests) {
        const answers = [old.answer(one), next.answer(one)];
        if (answers[0] !== answers[1]) changed++;
        const found = idOf(tried(order, one));
        if (!answers.includes(found)) expect(answers, told(one, first, second)).toContain(found);
      }
    };
    for (const location of add) {
      state = [...state, location];
      look();
    }
    for (const { name } of remove) {
      state = state.filter((other) => other.name !== name);
      look();
    }
    for (const one of requests) expect(idOf(tried(state, one))).toBe(next.answer(one));
    old.free();
    next.free();
  }
  expect(moments).toBeGreaterThan(TABLES * 5);
  expect(changed).toBeGreaterThan(moments);
});

/** A table that differs in a few places. */
function alike(random: Random, table: readonly HostRules[]): HostRules[] {
  return table
    .filter(() => !random.onceIn(5))
    .map((rules) => {
      if (rules.routes.length === 0 || random.onceIn(2)) return rules;
      const routes = rules.routes.filter(() => !random.onceIn(4));
      return { ...rules, routes: random.onceIn(2) ? routes : [...routes].reverse() };
    });
}

/** The request, and the routes of each table. */
function told(one: TriedRequest, ...tables: (readonly HostRules[])[]): string {
  const rules = tables.map((table) =>
    table.map(({ pattern, routes, unmatched }) => {
      const paths = routes.map(({ path, label, matches, outcome }) => [
        label,
        path,
        matches.length,
        outcome !== undefined,
      ]);
      return JSON.stringify([pattern, unmatched !== undefined, ...paths]);
    }),
  );
  return [JSON.stringify(one), ...rules.flat()].join("\n");
}
