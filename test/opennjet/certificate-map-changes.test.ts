/** How one change of the map of certificates reaches OpenNJet: over a double, with a clock that stands still. */
import { describe, expect, it } from "vitest";
import type { MapsApi } from "../../controller/proxies/opennjet/certificate-maps.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { certificateStep } from "../support/plans.js";
import { drivenMaps } from "./driven-maps.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const A = makeCertificate("A", HOST);

describe("A change of the map", () => {
  it("that OpenNJet refuses in part is no reason to wait for the rest of it; it is tried again", async () => {
    const { certificates, clock, until, hosts, puts, said } = await drivenMaps({ mapBucket: 64 });
    await certificates.start();
    const long = "a".repeat(47);
    const before = puts();
    await certificates.after([certificateStep(HOST, A), certificateStep(long, A)], false);
    expect(certificates.settled).toBe(false);
    expect(hosts()).toEqual([]);
    for (const tries of [2, 3]) {
      clock.advance(10_000);
      await until(() => puts() === before + tries && clock.waits(10_000));
    }
    await until(() => said.includes("the map of certificates can't be brought in step yet"));
    await certificates.after([{ step: "remove-certificate", host: long }], false);
    expect(certificates.settled).toBe(true);
    expect(hosts()).toEqual([HOST]);
  });

  it("of which the version alone came into force is not taken for whole: what the map still names is kept", async () => {
    const { certificates, clock, until, hosts, puts, shown } = await drivenMaps({ mapBucket: 64 });
    await certificates.start();
    await certificates.after([certificateStep(HOST, A)], false);
    const before = puts();
    // As many hosts as before.
    const steps = [{ step: "remove-certificate", host: HOST } as const, certificateStep("a".repeat(47), A)];
    await certificates.after(steps, false);
    for (const tries of [2, 3]) {
      clock.advance(10_000);
      await until(() => puts() === before + tries && clock.waits(10_000));
    }
    expect(certificates.settled).toBe(false);
    expect(hosts()).toEqual([HOST]);
    expect(await shown(HOST)).toBe("A");
  });

  it("is never made twice at a time, however many wait for the one before", async () => {
    let [under, most] = [0, 0];
    const around = (maps: MapsApi): MapsApi => ({
      async list() {
        most = Math.max(most, ++under);
        return await maps.list().finally(() => under--);
      },
      replace: (list) => maps.replace(list),
    });
    const { certificates, hosts } = await drivenMaps({ around });
    await certificates.start();
    const names = ["a.example.com", "b.example.com", "c.example.com", "d.example.com"];
    await Promise.all(names.map((name) => certificates.after([certificateStep(name, A)], false)));
    expect(most).toBe(1);
    expect(certificates.settled).toBe(true);
    expect(hosts()).toEqual(names);
  });

  it("that timed out is looked for, and not made again, until it is there", async () => {
    const { double, certificates, clock, until, puts, shown } = await drivenMaps();
    await certificates.start();
    const before = puts();
    double.faults.timeouts = 1;
    const applied = certificates.after([certificateStep(HOST, A)], false);
    // As long as it may take to come into force.
    for (let seconds = 0; seconds < 10; seconds += 0.2) {
      await until(() => clock.waits(200));
      clock.advance(200);
    }
    expect(puts()).toBe(before + 1);
    expect(await shown(HOST)).toBe("default");
    expect(certificates.settled).toBe(false);
    double.plane.applyLate();
    await until(() => clock.waits(200));
    clock.advance(200);
    await applied;
    expect(certificates.settled).toBe(true);
    expect(puts()).toBe(before + 1);
    expect(await shown(HOST)).toBe("A");
  });

  it("that timed out and never comes is made again", async () => {
    const { double, certificates, clock, until, puts, shown } = await drivenMaps();
    await certificates.start();
    const before = puts();
    Object.assign(double.faults, { timeouts: 1, timeoutsAreLost: true });
    let done = false;
    const applied = certificates.after([certificateStep(HOST, A)], false).then(() => {
      done = true;
    });
    while (!done) {
      await until(() => done || clock.waits(200));
      clock.advance(200);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await applied;
    await until(() => certificates.settled);
    expect(clock.now()).toBeGreaterThan(15_000);
    expect(puts()).toBe(before + 2);
    expect(await shown(HOST)).toBe("A");
  });

  it("takes a host whose name is the word that stands for all others in a map, and leaves these alone", async () => {
    const { certificates, shown } = await drivenMaps();
    await certificates.start();
    await certificates.after([certificateStep("default", makeCertificate("of the host", "default"))], false);
    expect(certificates.settled).toBe(true);
    expect(await shown("default")).toBe("of the host");
    expect(await shown("nobody.example.com")).toBe("default");
  });
});
