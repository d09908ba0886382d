/** The carrier locations where changes get lost, come late, or are undone by others; over the double, with two workers. */
import { expect, it } from "vitest";
import { BackendsApi } from "../../controller/proxies/opennjet/api/index.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { isMarker } from "../../controller/proxies/opennjet/locations/marker.js";
import type { DataPlane } from "../../controller/proxies/opennjet/locations/questions.js";
import { ingress, service } from "../cli/objects.js";
import { DOUBLE_TOKEN } from "../real/opennjet-double/index.js";
import { cleanUpAfterEach, cleanup, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { carriedDouble } from "./carried-double.js";
import { carrierOver } from "./carrier-over.js";
import { drivenByObjects } from "./locations-changing.js";
import { all, answers, SHOP_HOST, shop, untilAll } from "./locations-shop.js";
import { MemoryOpenNjet } from "./memory-opennjet.js";

cleanUpAfterEach();

/** Longer than the carrier takes to look whether all is there. */
const LOOKED = 40_000;
const HOST = SHOP_HOST;
it("What the agent has taken and no worker got, the marker with it, is there before the change is told as done", async () => {
  const made = await shop();
  // The location and the marker; the agent knows both, and would take neither again.
  made.double.faults.lostDeliveries = 2;
  expect(await made.set(ingress("more", "more.example.com", "two"))).toEqual([]);
  expect(made.double.faults.lostDeliveries).toBe(0);
  expect(await answers(made, "more.example.com")).toEqual(all("two"));
  expect(await answers(made)).toEqual(all("one"));
  // And all goes on from there.
  expect(await made.remove(ingress("more", "more.example.com", "two"))).toEqual([]);
  expect(await answers(made, "more.example.com")).toEqual(all("404"));
  expect(await made.set(ingress("shop", "new.example.com", "one"))).toEqual([]);
  expect(await answers(made)).toEqual(all("404"));
  expect(await answers(made, "new.example.com")).toEqual(all("one"));
});

it("A change is told as done when workers that lag have it, and not before", async () => {
  const made = await shop();
  const { double } = made;
  double.faults.workersWait = true;
  const before = double.requests.length;
  let done = false;
  const applied = made.set(ingress("more", "more.example.com", "two")).then(() => {
    done = true;
  });
  await eventually(() => double.requests.length > before + 2, LOOKED);
  expect(done).toBe(false);
  expect(await answers(made, "more.example.com")).toEqual(all("404"));
  expect(await answers(made)).toEqual(all("one"));
  double.faults.workersWait = false;
  double.plane.deliver();
  await applied;
  expect(await answers(made, "more.example.com")).toEqual(all("two"));
});

it("Hundreds of removals are paced: no worker loses one", async () => {
  const made = await shop();
  const names = Array.from({ length: 140 }, (_, i) => `many-${i}`);
  const many = names.map((name) => ingress(name, `${name}.example.com`, "two")).join("---\n");
  expect(await made.set(many)).toEqual([]);
  expect(await answers(made, "many-139.example.com")).toEqual(all("two"));
  expect(await made.remove(many)).toEqual([]);
  for (const name of [0, 70, 99, 100, 120, 139].map((i) => names[i])) {
    expect(await answers(made, `${name}.example.com`)).toEqual(all("404"));
  }
  expect(await answers(made)).toEqual(all("one"));
});

it("Of more changes than OpenNJet keeps for a worker that is behind, removals wait until workers have all additions", async () => {
  const made = await carriedDouble({ maxLocations: 600 });
  const { double } = made;
  const driven = await drivenByObjects(made.carrier);
  const peer = closing(await httpPeer((_request, response) => response.end("one")));
  await driven.set(service("one", "127.0.0.1", peer.port));
  const names = Array.from({ length: 520 }, (_, i) => `many-${i}`);
  const all = (domain: string) => names.map((name) => ingress(name, `${name}.${domain}`, "one")).join("---\n");
  expect(await driven.set(all("old.example.com"))).toEqual([]);
  const before = double.requests.length;
  const verbs = () => double.requests.slice(before).map(({ method }) => method);
  double.faults.workersWait = true;
  const applied = driven.set(all("new.example.com"));
  // Each location, and the marker of both sets.
  await eventually(() => verbs().length >= names.length + 1, LOOKED);
  for (let i = 0; i < 20; i++) expect((await ask(made.http, { host: "many-0.new.example.com" })).status).toBe(404);
  // The marker of before, which is all that goes.
  expect(verbs().filter((verb) => verb === "PUT").length).toBeLessThanOrEqual(1);
  double.faults.workersWait = false;
  double.plane.deliver();
  expect(await applied).toEqual([]);
  expect(verbs().filter((verb) => verb === "PUT")).toHaveLength(names.length + 2);
  expect(verbs().filter((verb) => verb === "POST")).toHaveLength(names.length + 2);
  expect((await ask(made.http, { host: "many-519.new.example.com" })).body).toBe("one");
  expect((await ask(made.http, { host: "many-519.old.example.com" })).status).toBe(404);
}, 60_000);

it("Locations that somebody else has removed come back", async () => {
  const made = await shop();
  const server = { addressPort: "0.0.0.0:80", serverName: LOCATIONS_SERVER_NAME };
  const { locations } = made.double.plane.agent.servers[0];
  const ours = locations.filter(({ isStatic }) => !isStatic);
  expect(ours.some(isMarker)).toBe(true);
  for (const { name } of [...ours]) await made.api.locations.remove(server, { rule: "", name });
  expect(await answers(made)).toEqual(all("404"));
  await untilAll(made, "one");
}, 60_000);

it("Backends that somebody else has posted away come back", async () => {
  const made = await shop();
  const others = new BackendsApi({ origin: made.double.backendsOrigin, token: DOUBLE_TOKEN });
  await others.post([]);
  await others.close();
  expect(await answers(made)).toEqual(all("503"));
  await untilAll(made, "one");
}, 60_000);

it.each(["restart", "kill"] as const)(
  "What a %s of OpenNJet has taken comes back",
  async (end) => {
    const made = await shop();
    expect(await made.set(ingress("shop", HOST, "two"))).toEqual([]);
    await made.double[end]();
    made.restarted();
    await untilAll(made, "two");
    expect(await made.set(ingress("shop", HOST, "one"))).toEqual([]);
    expect(await answers(made)).toEqual(all("one"));
  },
  60_000,
);

it("A look at an idle OpenNJet, one worker of which takes all connections, asks a few times and no more", async () => {
  const opennjet = new MemoryOpenNjet();
  const { locations: api, backends, plane } = opennjet.connect();
  let asked = 0;
  const counting: DataPlane = {
    connect() {
      asked++;
      return plane.connect();
    },
    workers: () => 64,
  };
  const carrier = await carrierOver({
    api,
    backends,
    plane: counting,
    server: { addressPort: "0.0.0.0:80", serverName: "_" },
  });
  cleanup(() => carrier.close(0));
  const driven = await drivenByObjects(carrier);
  await driven.set(service("one", "127.0.0.1", 1));
  await driven.set(ingress("shop", HOST, "one"));
  asked = 0;
  await eventually(() => asked > 0, LOOKED);
  // A look is over long before the next one.
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(asked).toBeLessThanOrEqual(512);
});
