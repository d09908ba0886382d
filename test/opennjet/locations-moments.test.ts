/** What requests get in each moment of a change that the carrier makes: the answer of before, or that of afterwards. */
import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import { type ObjectChange, RoutingModel } from "../../controller/model/routing-model.js";
import type { NameHolder } from "../../controller/proxies/opennjet/locations/backend-names.js";
import { type LedgerEntry, MemoryLedger } from "../../controller/proxies/opennjet/locations/ledger.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import { isMarker } from "../../controller/proxies/opennjet/locations/marker.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import { service } from "../cli/objects.js";
import { changeOf, modelOf, parseYaml, removalOf, type SourceObject } from "../model/model-support.js";
import { makeRoutingTable, patternChecker } from "../support/core.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { Random } from "../support/random.js";
import { request } from "../support/rules.js";
import { carrierOver } from "./carrier-over.js";
import { type Connection, MemoryOpenNjet } from "./memory-opennjet.js";

cleanUpAfterEach();

const RUNS = 20;
const CHANGES = 30;
const SERVICES = ["a", "b", "c", "d"];
const INGRESSES = ["first", "second", "third"];
const HOSTS = ["one.example.com", "two.example.com", "*.example.com"];
const PATHS = ["/", "/a", "/a/b", "/b"];
const REQUESTS = ["one.example.com", "two.example.com", "other.example.com"].flatMap((host) =>
  ["/", "/a", "/a/b/c", "/b", "/c"].map((target) => ({ host, target })),
);

function pathTo(path: string, name: string): object {
  return { path, pathType: "Prefix", backend: { service: { name, port: { number: 80 } } } };
}

function ingressOf(name: string, rules: object[]): SourceObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name },
    spec: { ingressClassName: "njet", rules },
  };
}

function randomIngress(random: Random, name: string): SourceObject {
  const hosts = random.shuffled(HOSTS).slice(0, 1 + random.below(2));
  const rules = hosts.map((host) => {
    const paths = random.shuffled(PATHS).slice(0, 1 + random.below(3));
    return { host, http: { paths: paths.map((path) => pathTo(path, random.pick(SERVICES))) } };
  });
  return ingressOf(name, rules);
}

/** An Ingress that differs in one place: a service, a path or a host. */
function alike(random: Random, ingress: SourceObject): SourceObject {
  const copy = structuredClone(ingress) as SourceObject & {
    spec: { rules: { host: string; http: { paths: { path: string; backend: { service: { name: string } } }[] } }[] };
  };
  const rule = random.pick(copy.spec.rules);
  const path = random.pick(rule.http.paths);
  if (random.onceIn(2)) path.backend.service.name = random.pick(SERVICES);
  if (random.onceIn(3)) path.path = random.pick(PATHS);
  if (random.onceIn(4)) rule.host = random.pick(HOSTS);
  return copy;
}

/** Of all Ingresses and services: those that no route leads to now may have been led to before. */
const EVERY_UPSTREAM = [
  ...modelOf([...servicesOf(), ...INGRESSES.map(everywhere)])
    .snapshot()
    .upstreams.values(),
];

/** A controller with its model, over an OpenNJet. */
class Controller {
  readonly model = new RoutingModel({ checker: patternChecker(), source: "folder" });
  readonly planner = new Planner();

  private constructor(
    readonly carrier: LocationsCarrier,
    readonly connection: Connection,
  ) {}

  static async start(njet: MemoryOpenNjet, ledgers: Ledgers): Promise<Controller> {
    const connection = njet.connect();
    const carrier = await carrierOver({
      api: connection.locations,
      server: { addressPort: "0.0.0.0:80", serverName: "" },
      backends: connection.backends,
      plane: connection.plane,
      ledger: ledgers.locations,
      names: ledgers.names,
      now: () => 0,
    });
    // Not waited for: one that was killed never ends.
    cleanup(() => void carrier.close(0));
    return new Controller(carrier, connection);
  }

  rules(): Map<string, HostRules> {
    return new Map(this.model.snapshot().hosts);
  }

  /** What the core decides by these rules. */
  static decide(hosts: ReadonlyMap<string, HostRules>): string[] {
    const table = makeRoutingTable();
    for (const upstream of EVERY_UPSTREAM) table.setPeers(upstream.peers);
    for (const rules of hosts.values()) table.setHost(rules);
    const answers = REQUESTS.map(({ host, target }) => {
      const decision = table.decide(request(target, { host }), 0);
      if (decision.action !== "proxy") return String(decision.status);
      return String(decision.peer.port);
    });
    table.free();
    return answers;
  }
}

interface Ledgers {
  locations: MemoryLedger<LedgerEntry>;
  names: MemoryLedger<NameHolder>;
}

/** An OpenNJet whose answers are looked at in each moment. */
class Watched {
  readonly njet = new MemoryOpenNjet();
  readonly objects = new Map<string, SourceObject>();
  moments = 0;
  /** Of all requests in all moments: those whose answers of before and afterwards differ. */
  moving = 0;
  #allowed: ReadonlySet<string>[] = [];
  #before = REQUESTS.map(() => new Set(["404"]));

  constructor(private readonly told: () => string) {
    this.njet.changed = () => {
      this.moments++;
      for (const [i, one] of REQUESTS.entries()) {
        if (this.#allowed[i].size > 1) this.moving++;
        const found = this.njet.answer(one);
        if (!this.#allowed[i].has(found)) {
          this.wrong ??= `${JSON.stringify(one)} got ${found}, allowed ${[...this.#allowed[i]]}; ${this.told()}`;
        }
      }
    };
  }

  /** The first answer that was neither. It does not go through the carrier, which would take it for one of OpenNJet. */
  wrong: string | undefined;

  /** From now on these answers may be given as well. */
  expect(...answers: (readonly string[])[]): void {
    this.#allowed = this.#before.map((before, i) => new Set([...before, ...answers.map((list) => list[i])]));
  }

  /** A change has ended; or has not, `broken`: then what it has begun may still act. */
  ended(broken = false): string[] {
    expect(this.wrong).toBeUndefined();
    const found = REQUESTS.map((one) => this.njet.answer(one));
    this.#before = broken ? this.#allowed.map((answers) => new Set(answers)) : found.map((answer) => new Set([answer]));
    return found;
  }
}

function randomChange(random: Random, objects: Map<string, SourceObject>): ObjectChange[] {
  return Array.from({ length: 1 + random.below(2) }, () => {
    const name = random.pick(INGRESSES);
    const there = objects.get(name);
    if (there !== undefined && random.onceIn(6)) {
      objects.delete(name);
      return removalOf(there);
    }
    const object = there !== undefined && !random.onceIn(4) ? alike(random, there) : randomIngress(random, name);
    objects.set(name, object);
    return changeOf(object);
  });
}

function servicesOf(): SourceObject[] {
  return parseYaml(SERVICES.map((name, i) => service(name, "127.0.0.1", 8001 + i)).join("---\n"));
}

/** An Ingress that leads to each service. */
function everywhere(name: string): SourceObject {
  const paths = SERVICES.map((to) => pathTo(`/${to}`, to));
  return ingressOf(name, [{ host: `${name}.example.com`, http: { paths } }]);
}

/** `rules`, but for one host that stays as it was. */
function keeping(
  rules: ReadonlyMap<string, HostRules>,
  before: ReadonlyMap<string, HostRules>,
  host: string,
): Map<string, HostRules> {
  const kept = new Map(rules);
  const old = before.get(host);
  // One that is to go goes.
  if (!rules.has(host)) return kept;
  if (old === undefined) kept.delete(host);
  else kept.set(host, old);
  return kept;
}

/** Whether a condition is of this host, as it begins. */
function isOfHost(condition: string, host: string): boolean {
  if (condition.startsWith(`($host = ${host} `)) return true;
  return host.startsWith("*") && condition.startsWith("($host ~ ");
}

const names = (njet: MemoryOpenNjet) => [...njet.locations.values()].filter((one) => !isMarker(one)).length;

it(`are right in each moment of ${RUNS * CHANGES} changes, some refused, and over restarts and sudden ends of the controller`, async () => {
  const counts = { refused: 0, partly: 0, killed: 0, restarted: 0, moments: 0, moving: 0, most: 0 };
  for (let run = 0; run < RUNS; run++) {
    const random = new Random(1000 + run);
    let step = 0;
    const watched = new Watched(() => `run ${run}, change ${step}`);
    const { njet, objects } = watched;
    const ledgers: Ledgers = { locations: new MemoryLedger(), names: new MemoryLedger() };
    let applied = new Map<string, HostRules>();
    /** A controller for the objects as they are, with nothing of before but its ledgers. */
    const start = async () => {
      njet.refuses = () => false;
      const controller = await Controller.start(njet, ledgers);
      controller.model.update([...servicesOf(), ...objects.values()].map(changeOf));
      applied = controller.rules();
      const wanted = Controller.decide(applied);
      watched.expect(wanted);
      const { failures } = await controller.carrier.apply(controller.planner.planFull(controller.model.snapshot()));
      expect(failures).toEqual([]);
      await controller.carrier.complete();
      expect(watched.ended(), `run ${run}, change ${step}`).toEqual(wanted);
      return controller;
    };
    let now = await start();
    for (; step < CHANGES; step++) {
      const change = now.model.update(randomChange(random, objects));
      const rules = now.rules();
      const wanted = Controller.decide(rules);
      watched.expect(wanted);
      const plan = now.planner.planChanges(change);
      if (random.onceIn(6)) {
        let left = random.below(4);
        const { changed } = njet;
        const dies = new Promise<void>((resolve) => {
          njet.changed = () => {
            changed();
            if (left-- > 0) return;
            now.connection.kill();
            resolve();
          };
        });
        await Promise.race([dies, now.carrier.apply(plan)]);
        now.connection.kill();
        njet.changed = changed;
        watched.ended(true);
        randomChange(random, objects);
        now = await start();
        counts.killed++;
        continue;
      }
      const refused = random.onceIn(5) ? random.pick(HOSTS) : undefined;
      const before = Controller.decide(applied);
      const without = refused === undefined ? wanted : Controller.decide(keeping(rules, applied, refused));
      if (refused !== undefined) watched.expect(wanted, without);
      njet.refuses = ({ name }) => refused !== undefined && isOfHost(name, refused);
      const { failures } = await now.carrier.apply(plan);
      const found = watched.ended();
      const told = `run ${run}, change ${step}, refused ${refused}`;
      if (failures.length === 0) {
        expect(found, told).toEqual(wanted);
        applied = rules;
      } else {
        // Where it does not go without the host, nothing is changed.
        expect([without, before], told).toContainEqual(found);
        counts.refused++;
        if (!isDeepStrictEqual(found, before)) counts.partly++;
      }
      counts.most = Math.max(counts.most, names(njet));
      if (failures.length > 0 || random.onceIn(8)) {
        now.connection.kill();
        randomChange(random, objects);
        now = await start();
        counts.restarted++;
      }
    }
    counts.moments += watched.moments;
    counts.moving += watched.moving;
    expect(njet.backends.size).toBeLessThanOrEqual(names(njet));
  }
  // It happened often enough to mean something.
  expect(counts.refused).toBeGreaterThan(10);
  expect(counts.partly).toBeGreaterThan(5);
  expect(counts.killed).toBeGreaterThan(25);
  expect(counts.restarted).toBeGreaterThan(25);
  expect(counts.moments).toBeGreaterThan(3000);
  expect(counts.moving).toBeGreaterThan(3000);
}, 120_000);

it("A controller that starts anew finds the names that its routes had, and changes nothing where nothing is to change", async () => {
  const njet = new MemoryOpenNjet();
  const ledgers: Ledgers = { locations: new MemoryLedger(), names: new MemoryLedger() };
  const start = async (to: string) => {
    const controller = await Controller.start(njet, ledgers);
    const ingress = ingressOf("first", [{ host: HOSTS[0], http: { paths: [pathTo("/", to)] } }]);
    controller.model.update([...servicesOf(), ingress].map(changeOf));
    await controller.carrier.apply(controller.planner.planFull(controller.model.snapshot()));
    await controller.carrier.complete();
    controller.connection.kill();
  };
  await start("a");
  const before = [...njet.locations.keys()];
  let changes = 0;
  njet.changed = () => changes++;
  await start("a");
  expect(changes).toBe(0);
  await start("b");
  // The service alone has changed.
  expect(changes).toBe(1);
  expect([...njet.locations.keys()]).toEqual(before);
  expect(njet.answer({ host: HOSTS[0], target: "/" })).toBe("8002");
});
