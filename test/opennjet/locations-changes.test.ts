/** Which calls a change of an object is, as the table of changes of the OpenNJet KIC has it; no others are made. */
import { expect, it } from "vitest";
import { ingress, service } from "../cli/objects.js";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { type Changing, changing } from "./locations-changing.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const BODY = /\/(?:api|other)/;

async function peer(name: string): Promise<number> {
  return closing(await httpPeer((_request, response) => response.end(name))).port;
}

/** A shop with an Ingress for service `one`, and a service `two`; what was called for it is looked at already. */
async function shop(): Promise<Changing & { ports: [number, number] }> {
  const ports: [number, number] = [await peer("one"), await peer("two")];
  const made = await changing();
  await made.set(`${service("one", "127.0.0.1", ports[0])}---\n${service("two", "127.0.0.1", ports[1])}`);
  await made.set(ingress("shop", HOST, "one"));
  made.calls();
  return { ...made, ports };
}

/** Calls without the conditions in them. */
function kinds(calls: string[]): string[] {
  return calls.map((call) => call.replace(/^(add|remove) (?!marker).*/, "$1 location"));
}

it("An Ingress that comes is posted as a backend, and its locations are added", async () => {
  const { set, calls, http } = await changing();
  await set(service("one", "127.0.0.1", await peer("one")));
  expect(calls()).toEqual([]);
  expect(await set(ingress("shop", HOST, "one"))).toEqual([]);
  expect(kinds(calls())).toEqual(["post 1", "add location", "add marker", "remove marker"]);
  expect((await ask(http, { host: HOST })).body).toBe("one");
});

it("An Ingress that goes has its locations removed, and its backend taken away", async () => {
  const { remove, calls, http } = await shop();
  await remove(ingress("shop", HOST, "one"));
  expect(kinds(calls())).toEqual(["remove location", "add marker", "remove marker", "post 0"]);
  expect((await ask(http, { host: HOST })).status).toBe(404);
});

it("A service that an Ingress turns to is a post of backends alone", async () => {
  const { set, calls, http } = await shop();
  await set(ingress("shop", HOST, "two"));
  expect(calls()).toEqual(["post 1"]);
  expect((await ask(http, { host: HOST })).body).toBe("two");
});

it("Pods that are scaled are a post of backends alone", async () => {
  const { set, calls, http, ports } = await shop();
  await set(service("one", "127.0.0.1", ports[1]));
  expect(calls()).toEqual(["post 1"]);
  expect((await ask(http, { host: HOST })).body).toBe("two");
});

it("A path that changes is a change of locations alone", async () => {
  const { set, calls, http } = await shop();
  await set(ingress("shop", HOST, "one").replace("path: /,", "path: /api,"));
  const made = calls();
  expect(kinds(made)).toEqual(["add location", "remove location", "add marker", "remove marker"]);
  expect(made[0]).toMatch(BODY);
  expect((await ask(http, { host: HOST, path: "/api" })).body).toBe("one");
  expect((await ask(http, { host: HOST, path: "/" })).status).toBe(404);
});

it("A host that changes is a change of locations alone", async () => {
  const { set, calls, http } = await shop();
  await set(ingress("shop", "new.example.com", "one"));
  expect(kinds(calls())).toEqual(["add location", "remove location", "add marker", "remove marker"]);
  expect((await ask(http, { host: "new.example.com" })).body).toBe("one");
  expect((await ask(http, { host: HOST })).status).toBe(404);
});

it("A location whose addition timed out and came late is asked for once more, and known to be there", async () => {
  const { double, set, calls, http } = await shop();
  const before = double.requests.length;
  double.faults.timeouts = 1;
  const applied = set(ingress("more", "more.example.com", "two"));
  await eventually(() => double.requests.length > before, 20_000);
  double.plane.applyLate();
  expect(await applied).toEqual([]);
  const [post, first, second, ...rest] = calls();
  expect(post).toBe("post 2");
  expect(second).toBe(first);
  expect(kinds(rest)).toEqual(["add marker", "remove marker"]);
  expect((await ask(http, { host: "more.example.com" })).body).toBe("two");
});

it("A host that needs more locations than there is room for is refused on its object, and the others are served", async () => {
  const made = await changing(1);
  await made.set(service("one", "127.0.0.1", await peer("one")));
  await made.set(ingress("shop", HOST, "one"));
  const failures = await made.set(ingress("more", "more.example.com", "one"));
  expect(failures.map(({ code }) => code)).toEqual(["PROXY_LOCATIONS_FULL"]);
  expect((await ask(made.http, { host: HOST })).body).toBe("one");
  expect((await ask(made.http, { host: "more.example.com" })).status).toBe(404);
});

it("300 locations are made where nobody says otherwise, and the host that needs one more is refused on its object", async () => {
  const made = await changing();
  await made.set(service("one", "127.0.0.1", await peer("one")));
  const host = (index: number) => `host-${index}.example.com`;
  const [first, ...others] = Array.from({ length: 300 }, (_, i) => host(i));
  const rules = others.map((name) => ingress("shop", name, "one").split("rules:\n")[1]);
  expect(await made.set(ingress("shop", first, "one") + rules.join(""))).toEqual([]);
  const failures = await made.set(ingress("more", "more.example.com", "one"));
  expect(failures.map(({ code }) => code)).toEqual(["PROXY_LOCATIONS_FULL"]);
  for (const index of [0, 150, 299]) expect((await ask(made.http, { host: host(index) })).body).toBe("one");
  expect((await ask(made.http, { host: "more.example.com" })).status).toBe(404);
});
