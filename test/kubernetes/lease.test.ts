import { describe, expect, it } from "vitest";
import { LEASE_TIMES, LeaseMachine, type LeaseSpec } from "../../controller/kubernetes/lease.js";

const HOUR = 3_600_000;

/** A lease that two machines read and write; each has a clock of its own. */
class Store {
  spec: LeaseSpec | undefined;

  /** One attempt of a machine; `clock` is its monotonic clock, `wall` its clock of the wall. */
  attempt(machine: LeaseMachine, clock: number, wall: number): boolean {
    machine.observe(this.spec, clock);
    const spec = machine.attempt(clock, wall);
    if (spec === undefined) return false;
    this.spec = spec;
    machine.observe(spec, clock);
    machine.renewed(clock);
    return true;
  }
}

describe("a lease", () => {
  it("is taken where there is none, and kept by renewing it", () => {
    const [store, machine] = [new Store(), new LeaseMachine("a", LEASE_TIMES)];
    expect(store.attempt(machine, 0, 1000)).toBe(true);
    expect(store.spec).toEqual({
      holderIdentity: "a",
      leaseDurationSeconds: 12,
      acquireTime: "1970-01-01T00:00:01.000000Z",
      renewTime: "1970-01-01T00:00:01.000000Z",
      leaseTransitions: 0,
    });
    store.attempt(machine, 2000, 3000);
    expect(store.spec).toMatchObject({ acquireTime: "1970-01-01T00:00:01.000000Z", leaseTransitions: 0 });
  });

  it("passes on twelve seconds after its last change, whatever the clocks of the replicas say", () => {
    for (const skew of [-HOUR, 0, HOUR]) {
      const [store, a, b] = [new Store(), new LeaseMachine("a", LEASE_TIMES), new LeaseMachine("b", LEASE_TIMES)];
      store.attempt(a, 0, HOUR);
      expect(store.attempt(b, 50_000, HOUR + skew)).toBe(false);
      expect(store.attempt(b, 61_999, HOUR + skew)).toBe(false);
      expect(store.attempt(b, 62_000, HOUR + skew)).toBe(true);
      expect(store.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
    }
  });

  it("is not taken from a replica that renews it", () => {
    const [store, a, b] = [new Store(), new LeaseMachine("a", LEASE_TIMES), new LeaseMachine("b", LEASE_TIMES)];
    for (let time = 0; time < 60_000; time += 2000) {
      store.attempt(a, time, time);
      expect(store.attempt(b, time + 1000, time)).toBe(false);
    }
  });

  it("is no longer led with before anyone else can take it, if it can't be renewed", () => {
    const [store, a] = [new Store(), new LeaseMachine("a", LEASE_TIMES)];
    store.attempt(a, 0, 0);
    expect([a.leads(7_999), a.leads(8_000)]).toEqual([true, false]);
  });

  it("is lost at once when another holder shows up", () => {
    const [store, a, b] = [new Store(), new LeaseMachine("a", LEASE_TIMES), new LeaseMachine("b", LEASE_TIMES)];
    store.attempt(a, 0, 0);
    store.attempt(b, 0, 0);
    store.attempt(b, 12_000, 12_000);
    a.observe(store.spec, 5000);
    expect(a.leads(5000)).toBe(false);
  });

  it("that was given away is free at once", () => {
    const [store, a, b] = [new Store(), new LeaseMachine("a", LEASE_TIMES), new LeaseMachine("b", LEASE_TIMES)];
    store.attempt(a, 0, 0);
    store.spec = a.release(1000, 1000);
    expect(a.leads(1000)).toBe(false);
    expect(store.attempt(b, 1001, 1001)).toBe(true);
  });
});
