/**
 * Which backend each route of an Ingress names. Upstreams of an Ingress go by their service, so routes have backends of their own:
 * a route that turns to another service keeps its name, and what is behind the name changes; a route whose path or host
 * changes takes its name along. Pure.
 */
import { createHash } from "node:crypto";

/** A route that is to have a name. */
export interface NamedRoute {
  /** Its identity: the place of the host and that of the rule in it. */
  route: string;
  /** Identity of what the name is to stand for: the upstream, and the protocol towards its peers. */
  target: string;
  /** Digest of the location without the name: that of the same requests with the same body. */
  shape: string;
}

/** A route that has a name, or may still have it. */
export interface NameHolder extends NamedRoute {
  name: string;
}

/**
 * A name for each route. `before`: all holders whose locations may be there; `taken`: further names that stand for something.
 *
 * In each moment on the way (backends are posted, then locations are added, then removed) a request gets the answer of before or
 * that of afterwards, since what a name stands for changes only where each location that has the name stays as it is, and
 * all of them turn to the same. So a route keeps its name where it can; else it takes one whose routes are gone and that
 * stands for the same; else it gets one that nothing has.
 */
export function allocateNames(
  routes: readonly NamedRoute[],
  before: readonly NameHolder[],
  taken: ReadonlySet<string>,
  label: (route: NamedRoute) => string,
): NameHolder[] {
  const wanted = new Map(routes.map((route) => [route.route, route]));
  const holders = new Map<string, NameHolder[]>();
  for (const holder of before) holders.set(holder.name, [...(holders.get(holder.name) ?? []), holder]);
  const standsFor = (name: string, target: string) => holders.get(name)?.every((one) => one.target === target) === true;
  const turnsTo = (name: string, target: string) =>
    holders.get(name)?.every(({ route, shape }) => {
      const now = wanted.get(route);
      return now?.shape === shape && now.target === target;
    }) === true;

  const names = new Map<string, string>();
  const used = new Set<string>();
  const give = ({ route }: NamedRoute, name: string) => {
    names.set(route, name);
    used.add(name);
  };
  const had = new Map<string, string[]>();
  for (const { route, name } of before.toReversed()) had.set(route, [...(had.get(route) ?? []), name]);
  for (const one of routes) {
    const own = had.get(one.route) ?? [];
    const kept = own.find((name) => standsFor(name, one.target)) ?? own.find((name) => turnsTo(name, one.target));
    if (kept !== undefined) give(one, kept);
  }
  for (const one of routes) {
    if (names.has(one.route)) continue;
    const free = [...holders.keys()].filter((name) => !used.has(name) && standsFor(name, one.target));
    const near = free.find((name) => holders.get(name)?.some(({ route }) => hostOf(route) === hostOf(one.route)));
    const left = near ?? free[0];
    if (left !== undefined) give(one, left);
  }
  for (const one of routes) {
    for (let i = 0; !names.has(one.route); i++) {
      const name = `${label(one)}-${digest(JSON.stringify([one.route, i]))}`;
      if (!used.has(name) && !holders.has(name) && !taken.has(name)) give(one, name);
    }
  }
  return routes.map((one) => ({ ...one, name: names.get(one.route) as string }));
}

/** The holders of both lists, each once. */
export function mergedHolders(a: readonly NameHolder[], b: readonly NameHolder[]): NameHolder[] {
  const key = ({ route, target, shape, name }: NameHolder) => JSON.stringify([route, target, shape, name]);
  const merged = new Map([...a, ...b].map((holder) => [key(holder), holder]));
  // Of what is in both, the later place counts: what was given last is looked at first.
  for (const holder of b) {
    merged.delete(key(holder));
    merged.set(key(holder), holder);
  }
  return [...merged.values()];
}

/** Identity of a route: where its host is, and the place of its rule there. */
export function routeIdentity(host: string, place: string): string {
  return `${host}\n${place}`;
}

/** 16 hexadecimal digits. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

export function isNameHolder(value: unknown): value is NameHolder {
  if (typeof value !== "object" || value === null) return false;
  const { route, target, shape, name } = value as Record<string, unknown>;
  return [route, target, shape, name].every((text) => typeof text === "string");
}

function hostOf(route: string): string {
  return route.slice(0, route.indexOf("\n"));
}
