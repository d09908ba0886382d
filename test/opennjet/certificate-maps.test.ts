/** How the map of certificates is kept in step: over a double, with a clock that stands still. */
import { describe, expect, it } from "vitest";
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
    certificates.start();
    clock.advance(0);
    await until(() => certificates.settled);
    const long = "a".repeat(47);
    const before = puts();
    await certificates.after([certificateStep(HOST, A), certificateStep(long, A)], false);
    expect(certificates.settled).toBe(false);
    expect(hosts()).toEqual([]);
    for (const tries of [2, 3]) {
      clock.advance(10_000);
      await until(() => puts() === before + tries);
    }
    await until(() => said.includes("the map of certificates can't be brought in step yet"));
    await certificates.after([{ step: "remove-certificate", host: long }], false);
    expect(certificates.settled).toBe(true);
    expect(hosts()).toEqual([HOST]);
  });

  it("of which the version alone came into force is not taken for whole: what the map still names is kept", async () => {
    const { certificates, clock, until, hosts, puts, shown } = await drivenMaps({ mapBucket: 64 });
    certificates.start();
    clock.advance(0);
    await until(() => certificates.settled);
    await certificates.after([certificateStep(HOST, A)], false);
    const before = puts();
    // As many hosts as before.
    const steps = [{ step: "remove-certificate", host: HOST } as const, certificateStep("a".repeat(47), A)];
    await certificates.after(steps, false);
    for (const tries of [2, 3]) {
      clock.advance(10_000);
      await until(() => puts() === before + tries);
    }
    expect(certificates.settled).toBe(false);
    expect(hosts()).toEqual([HOST]);
    expect(await shown(HOST)).toBe("A");
  });
});
