import { describe, expect, it } from "vitest";
import {
  allocateNames,
  mergedHolders,
  type NamedRoute,
  type NameHolder,
} from "../../controller/proxies/opennjet/locations/backend-names.js";
import { Random } from "../support/random.js";

const label = () => "shop";
const none = new Set<string>();

function route(place: string, path: string, target: string, host = "a"): NamedRoute {
  return { route: `${host}\n${place}`, shape: `${host}${path}`, target };
}

function named(routes: readonly NamedRoute[], before: readonly NameHolder[] = []): NameHolder[] {
  return allocateNames(routes, before, none, label);
}

describe("the name of a route's backend", () => {
  it("stays where the route turns to another service: what it stands for changes, and no location", () => {
    const before = named([route("1", "/", "one")]);
    expect(named([route("1", "/", "two")], before)[0].name).toBe(before[0].name);
  });

  it("stays where the path changes: locations change, and no backend", () => {
    const before = named([route("1", "/", "one")]);
    expect(named([route("1", "/api", "one")], before)[0].name).toBe(before[0].name);
  });

  it("goes along to another host", () => {
    const before = named([route("1", "/", "one")]);
    expect(named([route("1", "/", "one", "b")], before)[0].name).toBe(before[0].name);
  });

  it("is a new one where path and service change at once: the location of before must not meet the new service", () => {
    const before = named([route("1", "/", "one")]);
    expect(named([route("1", "/api", "two")], before)[0].name).not.toBe(before[0].name);
  });

  it("is none that stands for something else, whoever has posted it", () => {
    const [{ name }] = named([route("1", "/", "one")]);
    expect(allocateNames([route("1", "/", "one")], [], new Set([name]), label)[0].name).not.toBe(name);
  });

  it("is the same for the same routes, whatever came before is forgotten", () => {
    const routes = [route("1", "/", "one"), route("2", "/api", "one")];
    expect(named(routes)).toEqual(named(routes));
  });
});

/** Locations by what they take and name, and what is behind each name. */
interface Moment {
  locations: Map<string, NameHolder>;
  backends: Map<string, string>;
  before: readonly NameHolder[];
}

const key = ({ shape, name }: NameHolder) => `${shape} ${name}`;

function randomRoutes(random: Random): NamedRoute[] {
  const found = new Map<string, NamedRoute>();
  for (let i = random.below(6); i > 0; i--) {
    const one = route(
      String(random.below(4)),
      `/${random.below(4)}`,
      `service ${random.below(3)}`,
      "ab"[random.below(2)],
    );
    const same = [...found.values()].some(({ route, shape }) => route === one.route || shape === one.shape);
    if (!same) found.set(one.route, one);
  }
  return [...found.values()];
}

/** Some routes go, come, turn or move. */
function altered(random: Random, routes: readonly NamedRoute[]): NamedRoute[] {
  const fresh = randomRoutes(random);
  if (random.onceIn(4)) return fresh;
  const kept = routes.map((one) => {
    const other = fresh.find(({ route }) => route === one.route);
    if (other === undefined || random.onceIn(3)) return one;
    return random.onceIn(2) ? { ...one, target: other.target } : { ...one, shape: other.shape };
  });
  const distinct = kept.filter((one, i) => kept.findIndex(({ shape }) => shape === one.shape) === i);
  return distinct;
}

describe("in each moment of any sequence of changes, broken off ones among them,", () => {
  it("a location that is there leads to what it led to before, or to what its requests are to be led to now", () => {
    const random = new Random(91);
    let turned = 0;
    let brokenOff = 0;
    for (let run = 0; run < 400; run++) {
      const moment: Moment = { locations: new Map(), backends: new Map(), before: [] };
      let routes: NamedRoute[] = [];
      for (let step = 0; step < 12; step++) {
        routes = altered(random, routes);
        const next = allocateNames(routes, moment.before, new Set(moment.backends.keys()), label);
        expect(next.map(({ route, target, shape }) => ({ route, target, shape }))).toEqual(routes);
        const nowOf = new Map(routes.map(({ shape, target }) => [shape, target]));
        const was = new Map(moment.backends);
        // Backends first.
        for (const { name, target } of next) moment.backends.set(name, target);
        for (const { name, shape } of moment.locations.values()) {
          const leads = moment.backends.get(name);
          if (leads !== was.get(name)) {
            turned++;
            expect(leads).toBe(nowOf.get(shape));
          }
        }
        // Then what is new.
        for (const one of next) {
          expect(moment.backends.get(one.name)).toBe(one.target);
          if (random.onceIn(10)) continue;
          moment.locations.set(key(one), one);
        }
        moment.before = mergedHolders(moment.before, next);
        if (random.onceIn(3)) {
          brokenOff++;
          continue;
        }
        for (const one of next) moment.locations.set(key(one), one);
        const keys = new Set(next.map(key));
        for (const other of moment.locations.keys()) if (!keys.has(other)) moment.locations.delete(other);
        const names = new Set(next.map(({ name }) => name));
        for (const name of moment.backends.keys()) if (!names.has(name)) moment.backends.delete(name);
        moment.before = next;
      }
    }
    expect(turned).toBeGreaterThan(100);
    expect(brokenOff).toBeGreaterThan(1000);
  });
});
