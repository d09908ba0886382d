/** Workers that have nothing but the map of certificates, the limit of hosts in it, and readiness: over a double, with a clock that stands still. */
import { describe, expect, it } from "vitest";
import { MetricsPage } from "../../controller/observability/metrics-page.js";
import { MetricsServer } from "../../controller/observability/metrics-server.js";
import type { MapsApi } from "../../controller/proxies/opennjet/certificate-maps.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { makeCertificate, WEAK } from "../support/certificates.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { certificateStep, planOf } from "../support/plans.js";
import { drivenMaps } from "./driven-maps.js";
import { A, HOST, proxyOver, withOwnWorkers } from "./driven-proxy.js";

cleanUpAfterEach();

describe("Workers that have nothing but the map", () => {
  it("fail no handshake where they take it late: files that it no longer names stay for a minute", async () => {
    const { double, certificates, clock, until, files, shown } = await drivenMaps();
    await certificates.start();
    const wildcard = certificateStep("*.example.com", makeCertificate("wildcard", "*.example.com"));
    await certificates.after([certificateStep(HOST, A), wildcard], false);
    expect(await shown(HOST)).toBe("A");
    double.faults.workersWait = true;
    await certificates.after([{ step: "remove-certificate", host: HOST }], false);
    expect(certificates.settled).toBe(true);
    for (let looks = 0; looks < 5; looks++) {
      expect(await shown(HOST)).toBe("A");
      await until(() => clock.waits(10_000));
      clock.advance(10_000);
    }
    await until(() => clock.waits(10_000));
    expect(await shown(HOST)).toBe("A");
    double.plane.deliver();
    expect(await shown(HOST)).toBe("wildcard");
    clock.advance(10_000);
    await until(() => files().length === 1);
    expect(await shown(HOST)).toBe("wildcard");
  });

  it("keep the certificate of a host where the new one is of no use to any handshake, and its object is told", async () => {
    const maps = await drivenMaps();
    const proxy = proxyOver(maps);
    await proxy.complete();
    expect((await proxy.apply(planOf(certificateStep(HOST, A)))).failures).toEqual([]);
    const { failures } = await proxy.apply(planOf(certificateStep(HOST, WEAK)));
    expect(failures).toMatchObject([{ kind: "certificate", piece: HOST, code: "PROXY_CERTIFICATE_INVALID" }]);
    expect(failures[0].message).toContain("key too small");
    expect(await maps.shown(HOST)).toBe("A");
  });

  it("fail no handshake where a change whose answer did not come is in force after all: the minute begins with it, and has an end", async () => {
    const { double, certificates, clock, until, files, shown } = await drivenMaps();
    const look = async () => {
      await until(() => clock.waits(10_000));
      clock.advance(10_000);
    };
    await certificates.start();
    const wildcard = certificateStep("*.example.com", makeCertificate("wildcard", "*.example.com"));
    await certificates.after([certificateStep(HOST, A), wildcard], false);
    // The minute of the change before is over.
    for (let looks = 0; looks < 7; looks++) await look();
    double.faults.timeouts = 1;
    let answered = false;
    const applied = certificates.after([{ step: "remove-certificate", host: HOST }], false).then(() => {
      answered = true;
    });
    while (!answered) {
      await until(() => answered || clock.waits(200));
      clock.advance(200);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await applied;
    expect(certificates.settled).toBe(false);
    double.faults.workersWait = true;
    double.plane.applyLate();
    await until(() => clock.waits(10_000));
    clock.advance(10_000);
    await until(() => certificates.settled);
    expect(await shown(HOST)).toBe("A");
    double.plane.deliver();
    expect(await shown(HOST)).toBe("wildcard");
    for (let looks = 0; looks < 6 && files().length > 1; looks++) await look();
    await until(() => files().length === 1);
  });
});

describe("A map that OpenNJet refuses", () => {
  const LONG = "a".repeat(47);
  const OTHER = "other.example.com";

  it("is told of on the objects of all whose certificates it would have brought, and of no others", async () => {
    const maps = await drivenMaps({ mapBucket: 64 });
    const proxy = proxyOver(maps);
    await proxy.complete();
    const apply = (...steps: PlanStep[]) => proxy.apply(planOf(...steps));
    const refused = (host: string) => ({ piece: host, code: "PROXY_CERTIFICATE_MAP_REFUSED" });
    expect((await apply(certificateStep(HOST, A))).failures).toEqual([]);
    expect((await apply(certificateStep(LONG, A))).failures).toMatchObject([refused(LONG)]);
    // One that the map has already is renewed in its file.
    const renewed = makeCertificate("renewed", HOST);
    const { failures, retried } = await apply(certificateStep(HOST, renewed), certificateStep(OTHER, A));
    expect(failures).toMatchObject([refused(LONG), refused(OTHER)]);
    expect(failures).toHaveLength(2);
    expect(retried).toMatchObject([{ certificate: { host: LONG } }]);
    expect([await maps.shown(HOST), await maps.shown(OTHER)]).toEqual(["renewed", "default"]);
    const taken = await apply({ step: "remove-certificate", host: LONG });
    expect(taken.failures).toEqual([]);
    expect(taken.retried).toMatchObject([{ certificate: { host: OTHER } }]);
    expect(await maps.shown(OTHER)).toBe("A");
    expect((await apply()).retried).toEqual([]);
  });

  it("is told of as taken with the next plan, whatever that changes, where it was taken in between", async () => {
    const maps = await drivenMaps();
    const proxy = proxyOver(maps);
    await proxy.complete();
    maps.double.faults.answer = '{"code":4,"msg":"no"}';
    expect((await proxy.apply(planOf(certificateStep(HOST, A)))).failures).toMatchObject([
      { piece: HOST, code: "PROXY_CERTIFICATE_MAP_REFUSED", message: expect.stringContaining("no") },
    ]);
    maps.double.faults.answer = undefined;
    maps.clock.advance(100);
    await maps.until(() => maps.certificates.settled);
    const { failures, retried } = await proxy.apply(planOf());
    expect(failures).toEqual([]);
    expect(retried).toMatchObject([{ certificate: { host: HOST } }]);
  });

  it("is not told of where OpenNJet was only away", async () => {
    const maps = await drivenMaps();
    const proxy = proxyOver(maps);
    await proxy.complete();
    await maps.double.whileUnreachable(async () => {
      expect((await proxy.apply(planOf(certificateStep(HOST, A)))).failures).toEqual([]);
    });
  });
});

describe("Where nobody says otherwise", () => {
  const steps = Array.from({ length: 1_001 }, (_, i) => certificateStep(`host-${i}.example.com`, A));
  /** Of so many hosts OpenNJet has the map after it has answered that it took too long. */
  const settle = async ({ clock, certificates, double, until }: Awaited<ReturnType<typeof drivenMaps>>) => {
    while (!certificates.settled) {
      await until(() => certificates.settled || clock.waits(200));
      double.plane.applyLate();
      clock.advance(200);
    }
  };

  it("1,000 hosts have their certificates where workers have nothing but the map, and the next one is refused on its object", async () => {
    const maps = await drivenMaps();
    await maps.certificates.start();
    const applied = maps.certificates.after(steps, false);
    await settle(maps);
    expect((await applied).failures).toMatchObject([
      { piece: "host-1000.example.com", code: "PROXY_CERTIFICATES_FULL" },
    ]);
    expect(maps.hosts()).toHaveLength(1_000);
    expect(maps.files()).toHaveLength(1_000);
    expect(await maps.shown("host-999.example.com")).toBe("A");
    expect(await maps.shown("host-1000.example.com")).toBe("default");
  }, 60_000);

  it("1,000 hosts are the map's where workers can do without it, and none where they are more", async () => {
    const maps = await withOwnWorkers();
    expect((await maps.proxy.apply(planOf(...steps.slice(1)))).failures).toEqual([]);
    await settle(maps);
    expect(maps.hosts()).toEqual([]);
    await maps.proxy.apply(planOf({ step: "remove-certificate", host: HOST }));
    await settle(maps);
    expect(maps.hosts()).toHaveLength(1_000);
  }, 60_000);
});

describe("Readiness", () => {
  it("waits, where workers have nothing but the map, until it was in step once; and no longer than that", async () => {
    let gate: Promise<void> | undefined;
    let open: () => void = () => undefined;
    const around = (maps: MapsApi): MapsApi => ({
      list: () => maps.list(),
      async replace(list) {
        await gate;
        await maps.replace(list);
      },
    });
    const close = () => {
      gate = new Promise((resolve) => {
        open = resolve;
      });
    };
    const maps = await drivenMaps({ around });
    const proxy = proxyOver(maps);
    const page = new MetricsPage([], 1000);
    const server = closing(new MetricsServer({ page, logger: maps.logger, ready: () => proxy.state().serving }));
    const { port } = await server.listen("127.0.0.1", 0);
    const ready = async () => (await ask(port, { path: "/readyz" })).status === 200;

    close();
    await proxy.apply(planOf(certificateStep(HOST, A)));
    const completed = proxy.complete();
    expect(await maps.shown(HOST)).toBe("default");
    expect(await ready()).toBe(false);
    open();
    await completed;
    expect(await ready()).toBe(true);
    expect(await maps.shown(HOST)).toBe("A");

    close();
    const applied = proxy.apply(planOf(certificateStep("other.example.com", A)));
    expect(await ready()).toBe(true);
    open();
    await applied;
  });

  it("does not wait for the map where workers can do without it", async () => {
    const around = (maps: MapsApi): MapsApi => ({
      list: () => maps.list(),
      replace: () => new Promise(() => undefined),
    });
    const maps = await drivenMaps({ around, workers: { set: async () => undefined } });
    const proxy = proxyOver(maps);
    await proxy.apply(planOf(certificateStep(HOST, A)));
    await proxy.complete();
    expect(proxy.state().serving).toBe(true);
  });

  it("comes by itself where the first try fails", async () => {
    const maps = await drivenMaps();
    const proxy = proxyOver(maps);
    maps.double.faults.answer = '{"code":4,"msg":"no"}';
    await proxy.complete();
    expect(proxy.state().serving).toBe(false);
    maps.double.faults.answer = undefined;
    maps.clock.advance(100);
    await maps.until(() => proxy.state().serving);
  });
});
