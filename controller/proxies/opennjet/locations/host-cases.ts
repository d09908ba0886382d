/**
 * The rules of a host as cases that exclude each other: what the core finds by trying one route after the other, each case says by
 * itself. Which route comes before which: core-wasm/assembly/match/evaluate.ts and core-wasm/binding/compile/route-list.ts.
 */
import type { Action, Condition, HostRules, Match, Outcome, Route } from "../../../../core-wasm/binding/source.js";
import { UnsupportedError } from "../../plan-step.js";
import { ALWAYS, all, any, type Expression, isNever, not } from "./expression.js";
import { noneOf } from "./hosts.js";
import { covers, mayOverlap, pathExpression, pathPattern, type ReadPath, readPath } from "./paths.js";
import { sharesOf } from "./shares.js";
import { conditionExpression } from "./values.js";

/** What becomes of the requests of a host for which a condition holds. */
export interface HostCase {
  /**
   * The place of the rule in its host: the same as long as path, number of the match and of the share stay, whatever the
   * action is.
   */
  place: string;
  /** Without the host. No two cases of a host hold for one request. */
  when: Expression;
  action: Action;
  /** The rule of the path, undefined for guards and unmatched paths. */
  route: Route | undefined;
  /** `Kind/namespace/name` of the object that the rule is of. */
  resource: string;
}

interface ReadRoute {
  route: Route;
  path: ReadPath;
  /** That the path is covered and looked at. */
  covered: Expression;
  /** That one of the outcomes is taken, once it is looked at. */
  decides: Expression;
  place: string;
}

/** Throws UnsupportedError, with the object named, for what no condition can say. */
export function hostCases(rules: HostRules): HostCase[] {
  const cases: HostCase[] = [];
  let guarded: Expression = ALWAYS;
  for (const [i, { resource, match }] of rules.guards.entries()) {
    const holds = naming(resource, () => conditions(match.conditions));
    cases.push(
      ...shared(match.outcome, { place: `guard ${i}`, when: all(guarded, holds), route: undefined, resource }),
    );
    guarded = all(guarded, not(holds));
  }
  const routes = readRoutes(rules.routes);
  for (const [i, read] of routes.entries()) {
    const before = exclusions(read.path, routes.slice(0, i));
    cases.push(...casesOf(read, all(guarded, read.covered, ...before)));
  }
  if (rules.unmatched !== undefined) {
    const { outcome, resource } = rules.unmatched;
    const when = all(guarded, ...exclusions(undefined, routes));
    cases.push(...shared(outcome, { place: "unmatched", when, route: undefined, resource }));
  }
  return cases.filter(({ when }) => !isNever(when));
}

/** The first match that holds counts, then the outcome without conditions. */
function casesOf({ route, place }: ReadRoute, looked: Expression): HostCase[] {
  const { resource, matches, outcome } = route;
  const cases: HostCase[] = [];
  let left = looked;
  for (const [i, match] of matches.entries()) {
    const holds = naming(resource, () => conditions(match.conditions));
    cases.push(...shared(match.outcome, { place: `${place} match ${i}`, when: all(left, holds), route, resource }));
    left = all(left, not(holds));
  }
  if (outcome !== undefined) cases.push(...shared(outcome, { place, when: left, route, resource }));
  return cases;
}

/** A case for each entry of a split. */
function shared(outcome: Outcome, rest: Omit<HostCase, "action">): HostCase[] {
  if (outcome.kind !== "split") return [{ ...rest, action: outcome }];
  return sharesOf(outcome).map(({ index, holds, action }) => {
    return { ...rest, place: `${rest.place} share ${index}`, when: all(rest.when, holds), action };
  });
}

function conditions(list: readonly Condition[]): Expression {
  return all(...list.map(conditionExpression));
}

/** In the order in which they are tried. */
function readRoutes(routes: readonly Route[]): ReadRoute[] {
  const read = routes.map((route) => naming(route.resource, () => ({ route, path: readPath(route.path) })));
  const exact = read.filter(({ path }) => path.kind === "exact");
  const regexes = read.filter(({ path }) => path.kind === "regex");
  const prefixes = read.filter(({ path }) => path.kind === "segments" || path.kind === "prefix").sort(byParticularity);
  const paths = prefixes.map(({ path }) => path);
  const places = new Map<string, number>();
  return [...exact, ...regexes, ...prefixes].map(({ route, path }) => {
    const spelled = JSON.stringify(route.path);
    const count = places.get(spelled) ?? 0;
    places.set(spelled, count + 1);
    const looked = path.kind === "regex" ? regexLookedAt(path, paths) : ALWAYS;
    const decides = naming(route.resource, () => decidesOf(route.matches, route.outcome !== undefined));
    return { route, path, covered: all(pathExpression(path), looked), decides, place: `${spelled} ${count}` };
  });
}

/** The longest first; segments before the plain prefix of the same path, `^~` before one without. */
function byParticularity(a: { path: ReadPath }, b: { path: ReadPath }): number {
  if (a.path.kind === "regex" || b.path.kind === "regex") return 0;
  const kinds = Number(b.path.kind === "segments") - Number(a.path.kind === "segments");
  return b.path.length - a.path.length || kinds || Number(b.path.stopsRegex) - Number(a.path.stopsRegex);
}

function decidesOf(matches: readonly Match[], always: boolean): Expression {
  return always ? ALWAYS : any(...matches.map((match) => conditions(match.conditions)));
}

/** Regexes are passed over where the longest prefix is a `^~`: where one covers the path, and none that is longer. */
function regexLookedAt(regex: ReadPath, prefixes: readonly ReadPath[]): Expression {
  const clauses: Expression[] = [];
  for (const [i, stop] of prefixes.entries()) {
    if (stop.kind !== "prefix" || !stop.stopsRegex || !mayOverlap(stop, regex)) continue;
    // The first of one path counts.
    const longer = prefixes.slice(0, i).filter((other) => covers(stop, other));
    clauses.push(any(not(pathExpression(stop)), not(all(...uncovered(longer)))));
  }
  return all(...clauses);
}

/** That none of these prefixes and exact paths covers the path. */
function uncovered(paths: readonly ReadPath[]): Expression[] {
  const needed = paths.filter(
    (path, i) => !paths.some((other, k) => k !== i && covers(other, path) && !(covers(path, other) && i < k)),
  );
  const [single] = needed;
  if (needed.length === 1) return [not(pathExpression(single))];
  if (needed.some((path) => path.kind !== "regex" && path.kind !== "exact" && path.path === "")) return [any()];
  return noneOf("uri", needed.flatMap((path) => (path.kind === "regex" ? [] : [pathPattern(path)])).sort());
}

/** That no route before decides; `path` undefined: of any path. */
function exclusions(path: ReadPath | undefined, before: readonly ReadRoute[]): Expression[] {
  const relevant = before.filter((earlier) => path === undefined || mayOverlap(earlier.path, path));
  const whole = relevant.filter((earlier) => earlier.path.kind !== "regex" && isAlways(earlier.decides));
  const covered = whole.map((earlier) => earlier.path);
  // A path that an earlier route covers wholly is nobody's any more.
  if (path !== undefined && covered.some((other) => covers(other, path))) return [any()];
  const rest = relevant
    .filter((earlier) => !whole.includes(earlier) && !covered.some((other) => covers(other, earlier.path)))
    .map(({ covered: looked, decides }) => any(not(looked), not(decides)));
  return [...uncovered(covered), ...rest];
}

function isAlways(expression: Expression): boolean {
  return expression.kind === "all" && expression.of.length === 0;
}

/** Names the object that can't be carried. */
function naming<T>(resource: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    throw new UnsupportedError(`${resource}: ${error.message}`);
  }
}
