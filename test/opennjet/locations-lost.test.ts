/** Changes that one worker loses while it takes later ones; over the double, with two workers. */
import { expect, it } from "vitest";
import type { Expected } from "../../controller/proxies/opennjet/locations/held-locations.js";
import { Looks } from "../../controller/proxies/opennjet/locations/looks.js";
import { ingress } from "../cli/objects.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { all, answers, defaultIngress, type Shop, shop, untilAll } from "./locations-shop.js";

cleanUpAfterEach();

const MORE = "more.example.com";

/** One worker loses the next change of a host, and no other. */
function loseOne({ double }: Shop, type: "add" | "del", host: string, worker = 0): { lost: number } {
  const found = { lost: 0 };
  double.faults.loses = (change, to) => {
    if (change.about !== "location" || change.type !== type || to !== worker || found.lost > 0) return false;
    const name = change.type === "add" ? change.locations[0].location_name : change.location_name;
    if (!name.includes(host)) return false;
    found.lost++;
    return true;
  };
  return found;
}

/** Locations of a worker for a host, dynamic ones. */
function locationsOf({ double }: Shop, worker: number, host: string) {
  const { locations } = double.plane.workers[worker].servers[0];
  return locations.filter(({ isStatic, name }) => !isStatic && name.includes(host));
}

it("A location that one worker lost while it took later ones is there before the change is told as done", async () => {
  const made = await shop();
  const found = loseOne(made, "add", MORE);
  expect(await made.set(ingress("more", MORE, "two"))).toEqual([]);
  expect(found.lost).toBe(1);
  expect(await answers(made, MORE)).toEqual(all("two"));
  expect(await answers(made)).toEqual(all("one"));
});

it("A location that one worker kept while it took later changes is gone before its removal is told as done", async () => {
  const made = await shop();
  await made.set(ingress("more", MORE, "two"));
  const found = loseOne(made, "del", MORE);
  expect(await made.remove(ingress("more", MORE, "two"))).toEqual([]);
  expect(found.lost).toBe(1);
  expect(await answers(made, MORE)).toEqual(all("404"));
  expect(await answers(made)).toEqual(all("one"));
});

it("A host whose location one worker kept goes where it should in the other one in each moment, while the kept one is taken away", async () => {
  const seen: string[][] = [];
  let made: Shop | undefined;
  let found: { lost: number } | undefined;
  const between = async () => {
    // From here on the other worker has removed it.
    if (made !== undefined && found?.lost === 1) seen.push(await answers(made, MORE));
  };
  made = await shop({ between });
  await made.set(defaultIngress("any", "any"));
  await made.set(ingress("more", MORE, "two"));
  found = loseOne(made, "del", MORE);
  expect(await made.remove(ingress("more", MORE, "two"))).toEqual([]);
  // It was brought in once more, and removed.
  expect(made.double.requests.slice(-2).map(({ method }) => method)).toEqual(["POST", "PUT"]);
  expect(seen.length).toBeGreaterThan(3);
  for (const one of seen) expect(["two,any,two,any", "any,two,any,two", all("any").join()]).toContain(one.join());
  expect(await answers(made, MORE)).toEqual(all("any"));
});

it("Locations that a worker has lost, and such that came back in one, are found by looks, and repaired", async () => {
  const made = await shop();
  const many = Array.from({ length: 150 }, (_, i) => `many-${i}`);
  expect(await made.set(many.map((name) => ingress(name, `${name}.example.com`, "two")).join("---\n"))).toEqual([]);
  const [gone] = locationsOf(made, 1, "many-77.");
  await made.remove(ingress("many-77", "many-77.example.com", "two"));
  const { locations } = made.double.plane.workers[1].servers[0];
  locations.push(gone);
  locations.splice(locations.indexOf(locationsOf(made, 1, "many-141.")[0]), 1);
  // Its backend is gone.
  expect((await answers(made, "many-77.example.com")).sort()).toEqual(["404", "404", "503", "503"]);
  expect((await answers(made, "many-141.example.com")).sort()).toEqual(["404", "404", "two", "two"]);
  await untilAll(made, "404", "many-77.example.com");
  await untilAll(made, "two", "many-141.example.com");
}, 120_000);

it("A worker that never takes a location keeps no change from being told as done", async () => {
  const made = await shop();
  made.double.faults.loses = (change, worker) =>
    worker === 1 &&
    change.about === "location" &&
    change.type === "add" &&
    change.locations[0].location_name.includes(MORE);
  expect(await made.set(ingress("more", MORE, "two"))).toEqual([]);
  expect((await answers(made, MORE)).sort()).toEqual(["404", "404", "two", "two"]);
  expect(await answers(made)).toEqual(all("one"));
  delete made.double.faults.loses;
  await untilAll(made, "two", MORE);
}, 120_000);

it("Questions reach no peer and, asked by who does not know the secret, are ordinary requests", async () => {
  const made = await shop();
  await made.set(defaultIngress("any", "any"));
  const [{ name }] = locationsOf(made, 0, "shop.example.com");
  const id = /njet_kic_asked = ([0-9a-f]{20})/.exec(name)?.[1];
  expect(id).toBeDefined();
  expect(made.targets).toEqual([]);
  for (const path of [`/${id}`, `/${"0".repeat(32)}/${id}`]) {
    for (const headers of [undefined, { "njet-kic-asked": `${id}`, cookie: `njet_kic_asked=${id}` }]) {
      for (const host of ["shop.example.com", "nobody.example.com", "njet-kic.invalid"]) {
        made.targets.length = 0;
        const query = `?njet_kic_asked=${id}`;
        expect((await ask(made.http, { host, path: path + query, headers })).status).toBe(200);
        expect(made.targets).toEqual([`${host.startsWith("shop") ? "one" : "any"} ${path}${query}`]);
      }
    }
  }
});

it("Each worker is asked about everything by turns, about what was wrong each time, and of changing sets all the same", () => {
  const location = (i: number): Expected => {
    const name = `(${String(i).padStart(3, "0")})`;
    return { location: { rule: "", name, question: { host: "", path: "" } }, isThere: true };
  };
  const expected = Array.from({ length: 150 }, (_, i) => location(i));
  const looks = new Looks(2);
  const asked = (process: string, list = expected) => looks.of(list)(process);
  const first = [asked("1"), asked("1"), asked("1")].map((slice) => new Set(slice));
  expect(first[0].size).toBe(64);
  expect(new Set(first.flatMap((slice) => [...slice])).size).toBe(150);
  // Another process begins by itself.
  expect(new Set(asked("2"))).toEqual(first[0]);
  looks.suspect([expected[149]]);
  for (let i = 0; i < 3; i++) expect(asked("1")).toContain(expected[149]);
  looks.suspect([]);
  const seen = new Set<number>();
  for (let round = 0; round < 5; round++) {
    // What went before the place where it is, and what came, changes nothing.
    const changed = expected.filter((_, i) => i % 7 !== round).concat(location(900 + round));
    for (const one of asked("1", changed)) seen.add(expected.indexOf(one));
  }
  expect([...seen].filter((i) => i >= 0).length).toBe(150);
});

it("What is wrong at look after look is repaired at the first, second, fourth and eighth of them, and anew once all was right", () => {
  const looks = new Looks(1);
  const due = (count: number) => Array.from({ length: count }, (_, i) => i + 1).filter(() => looks.isDue(false));
  expect(due(9)).toEqual([1, 2, 4, 8]);
  expect(looks.isDue(true)).toBe(false);
  expect(due(3)).toEqual([1, 2]);
});
