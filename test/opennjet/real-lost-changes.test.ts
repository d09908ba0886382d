/** Changes of locations that a worker of a real OpenNJet loses, and that others make behind the controller's back. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import type { OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import type { LocationsApi } from "../../controller/proxies/opennjet/locations/held-locations.js";
import { type LedgerEntry, MemoryLedger } from "../../controller/proxies/opennjet/locations/ledger.js";
import { isMarker } from "../../controller/proxies/opennjet/locations/marker.js";
import { askWorker, type Question } from "../../controller/proxies/opennjet/locations/questions.js";
import { ingress, service } from "../cli/objects.js";
import { until } from "../nginx/driven-nginx.js";
import { RequestNginx } from "../nginx/request-nginx.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { carriedOver, serverOf } from "./carried-real.js";
import { QUESTIONS } from "./carrier-over.js";
import { type Driven, drivenByObjects } from "./locations-changing.js";
import { defaultIngress } from "./locations-shop.js";
import { noOpenNjet, openNjetWith } from "./real-installation.js";

cleanUpAfterEach();

const WORKERS = 2;
const MORE = "more.example.com";
/** What OpenNJet has as the kind of a process that is a worker, in names of files. */
const WORKER = 3;
/** Milliseconds in which workers take a change. */
const TAKEN = 300;

/** An Ingress of all hosts, for one path. */
const EVERY_HOST = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: every }
spec:
  ingressClassName: njet
  rules:
    - http: { paths: [{ path: /every, pathType: Prefix, backend: { service: { name: one, port: { number: 80 } } } }] }
`;

interface Shop extends Driven {
  njet: RequestNginx;
  api: OpenNjetApi;
  ledger: MemoryLedger<LedgerEntry>;
  /** Of peers: the path of each request. */
  targets: string[];
  /** The next call of this kind for this host is lost in one worker. */
  loseOne(kind: "add" | "remove", host: string): { lost: number };
}

/** Workers write each change to a file and read it there: the first of them can't from now on. Gives what ends that. */
function deafen(njet: RequestNginx): () => void {
  const file = join(njet.folder, "logs", `${WORKER}_0_add_location.txt`);
  rmSync(file, { force: true });
  mkdirSync(file);
  return () => rmSync(file, { recursive: true });
}

async function shop(): Promise<Shop> {
  const njet = await RequestNginx.start([], { flavour: openNjetWith("locations"), workers: WORKERS });
  const ledger = new MemoryLedger<LedgerEntry>();
  let losing: { kind: string; host: string; found: { lost: number } } | undefined;
  const lossy = async (kind: string, name: string, call: () => Promise<void>) => {
    if (losing?.kind !== kind || !name.includes(losing.host)) return await call();
    losing.found.lost++;
    losing = undefined;
    const hear = deafen(njet);
    await call();
    await new Promise((resolve) => setTimeout(resolve, TAKEN));
    hear();
  };
  const through = (api: LocationsApi): LocationsApi => ({
    add: (server, location) => lossy("add", location.name, () => api.add(server, location)),
    remove: (server, location) => lossy("remove", location.name, () => api.remove(server, location)),
  });
  const { carrier, api } = await carriedOver(njet, "own", WORKERS, { through, ledger });
  const driven = await drivenByObjects(carrier);
  const targets: string[] = [];
  for (const name of ["one", "two", "any"]) {
    const peer = await httpPeer((request, response) => {
      targets.push(`${name} ${request.url}`);
      response.end(name);
    });
    closing(peer);
    await driven.set(service(name, "127.0.0.1", peer.port));
  }
  await driven.set(ingress("shop", "shop.example.com", "one"));
  const loseOne = (kind: "add" | "remove", host: string) => {
    const found = { lost: 0 };
    losing = { kind, host, found };
    return found;
  };
  return { ...driven, njet, api, ledger, targets, loseOne };
}

/** What many connections get, of which each worker takes some. */
async function answers({ njet }: Shop, host: string): Promise<string[]> {
  const all = await Promise.all(Array.from({ length: 60 }, () => ask(njet.http, { host })));
  return [...new Set(all.map(({ status, body }) => (status === 200 ? body : String(status))))].sort();
}

/** What each worker says to a question. */
async function said({ njet }: Shop, question: Question): Promise<boolean[]> {
  const plane = dataPlane(() => ({ address: "127.0.0.1", port: njet.http }), WORKERS, false);
  const found = new Map<string, boolean>();
  await until("each worker was asked", async () => {
    const asked = Array.from({ length: 16 }, async () => {
      const connection = plane.connect();
      const one = await askWorker(connection, question).finally(() => connection.close());
      if (one === undefined) throw new Error("no answer to a question");
      found.set(one.process, one.isThere);
    });
    await Promise.all(asked);
    return found.size === WORKERS;
  });
  return [...found.values()];
}

/** What the ledger has of a host. */
async function noted({ ledger }: Shop, host: string): Promise<LedgerEntry[]> {
  return (await ledger.read()).filter(({ name }) => name.includes(host));
}

describe.skipIf(noOpenNjet)("over OpenNJet with the carrier locations", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it("a location that one worker lost while it took later ones is there before the change is told as done", async () => {
    const made = await shop();
    const found = made.loseOne("add", MORE);
    expect(await made.set(ingress("more", MORE, "two"))).toEqual([]);
    expect(found.lost).toBe(1);
    expect(await answers(made, MORE)).toEqual(["two"]);
    expect(await answers(made, "shop.example.com")).toEqual(["one"]);
  });

  it("a location that one worker kept while it took later changes is gone before its removal is told as done", async () => {
    const made = await shop();
    await made.set(defaultIngress("any", "any"));
    await made.set(ingress("more", MORE, "two"));
    const [{ question }] = await noted(made, MORE);
    expect(await said(made, question)).toEqual([true, true]);
    const found = made.loseOne("remove", MORE);
    expect(await made.remove(ingress("more", MORE, "two"))).toEqual([]);
    expect(found.lost).toBe(1);
    expect(await said(made, question)).toEqual([false, false]);
    expect(await answers(made, MORE)).toEqual(["any"]);
  });

  it("a location that somebody else has removed comes back, and one that was removed and that he has added goes", async () => {
    const made = await shop();
    const { njet, api } = made;
    await made.set(ingress("gone", "gone.example.com", "two"));
    await made.remove(ingress("gone", "gone.example.com", "two"));
    await made.set(ingress("more", MORE, "two"));
    const [gone] = await noted(made, "gone.example.com");
    const [more] = await noted(made, MORE);
    const body = `rewrite ^/${QUESTIONS}/ http://$njet_kic_asked/$pid? redirect; return 200 gone;`;
    await api.locations.add(serverOf(njet), { rule: "", name: gone.name, body });
    await api.locations.remove(serverOf(njet), more);
    await until("both act", async () => {
      return (
        (await answers(made, "gone.example.com")).join() === "gone" && (await answers(made, MORE)).join() === "404"
      );
    });
    await until("they are repaired", async () => {
      return (await answers(made, "gone.example.com")).join() === "404" && (await answers(made, MORE)).join() === "two";
    });
  });

  it("what one worker alone lost long after is found by a look, and repaired", async () => {
    const made = await shop();
    const { njet, api } = made;
    await made.set(ingress("more", MORE, "two"));
    const [more] = await noted(made, MORE);
    // Removed by the agent and by one worker: the other one has it still.
    const hear = deafen(njet);
    await api.locations.remove(serverOf(njet), more);
    await new Promise((resolve) => setTimeout(resolve, TAKEN));
    hear();
    expect((await said(made, more.question)).sort()).toEqual([false, true]);
    await until("each has it", async () => (await answers(made, MORE)).join() === "two");
    expect(await answers(made, "shop.example.com")).toEqual(["one"]);
  });

  it("each kind of location is asked about, in no peer's sight and no access log, and found to be right", async () => {
    const made = await shop();
    const { njet, targets } = made;
    await made.set(ingress("wild", "'*.example.org'", "two"));
    await made.set(EVERY_HOST);
    await made.set(defaultIngress("any", "any"));
    const there = (await made.ledger.read()).filter((one) => one.removed === undefined && !isMarker(one));
    expect(new Set(there.map(({ rule }) => rule))).toEqual(new Set(["", "~"]));
    expect(there.length).toBe(4);
    for (const { question } of there) expect(await said(made, question)).toEqual([true, true]);
    for (const { question } of (await made.ledger.read()).filter(({ removed }) => removed !== undefined))
      expect(await said(made, question)).toEqual([false, false]);
    expect((await ask(njet.http, { host: "any.example.net", path: "/every" })).body).toBe("one");
    expect((await ask(njet.http, { host: "tea.example.org", path: "/every" })).body).toBe("two");
    // A question of who does not know the secret is a request.
    const [{ question }] = there;
    const path = question.path.replace(QUESTIONS, "0".repeat(32));
    expect((await ask(njet.http, { host: question.host, path })).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    expect(targets).toEqual(["one /every", "two /every", `one ${path}`]);
    expect((await njet.logLines(3)).map(({ target }) => target)).toEqual(["/every", "/every", path]);
    expect(njet.errorLog()).not.toContain("exist!");
  });
});
