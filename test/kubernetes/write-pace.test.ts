import { describe, expect, it } from "vitest";
import { ApiError } from "../../controller/kubernetes/api-error.js";
import type { Clock } from "../../controller/kubernetes/clock.js";
import { WritePace } from "../../controller/kubernetes/write-pace.js";

const LIMITS = { start: 50, least: 5, most: 200, burst: 10, together: 4 };

/** Time that passes only while somebody sleeps, or as a test says. */
class HandClock implements Clock {
  time = 1_000;
  now(): number {
    return this.time;
  }
  async sleep(ms: number): Promise<void> {
    this.time += ms;
  }
}

function paceOf(limits = LIMITS) {
  const clock = new HandClock();
  const { signal } = new AbortController();
  const pace = new WritePace(limits, clock, () => 0);
  /** Makes a write that takes `ms`, when its turn has come; false if it was refused. */
  const write = async (ms: number, error?: Error): Promise<boolean> => {
    await pace.turn(signal);
    const outcome = pace.make(async () => {
      clock.time += ms;
      if (error !== undefined) throw error;
    });
    return outcome.then(
      () => true,
      () => false,
    );
  };
  return { clock, pace, write, signal };
}

const refused = (retryAfter = 0) => ApiError.of(429, { reason: "TooManyRequests" }, retryAfter);

describe("the pace of writes", () => {
  it("lets a few through at once, and then as many as its rate allows", async () => {
    const { clock, write } = paceOf({ ...LIMITS, most: 50 });
    for (let i = 0; i < 10; i++) await write(0);
    expect(clock.time).toBe(1_000);
    for (let i = 0; i < 50; i++) await write(0);
    expect(clock.time).toBeCloseTo(2_000, 0);
  });

  it("rises with quick answers, up to the most that is allowed", async () => {
    const { clock, pace, write } = paceOf();
    for (let i = 0; i < 100; i++) await write(5);
    expect(pace.perSecond).toBe(150);
    for (let i = 0; i < 100; i++) await write(5);
    expect(pace.perSecond).toBe(200);
    const before = clock.time;
    for (let i = 0; i < 200; i++) await write(1);
    expect(clock.time - before).toBeCloseTo(1_000, -2);
  });

  it("is halved by slow answers, once a second and never below the least", async () => {
    const { pace, write } = paceOf();
    await write(400);
    expect(pace.perSecond).toBe(25);
    await write(400);
    expect(pace.perSecond).toBe(25);
    for (let i = 0; i < 20; i++) await write(1_500);
    expect(pace.perSecond).toBe(5);
  });

  it("stops for as long as the API server asks for after a refusal", async () => {
    const { clock, pace, write } = paceOf();
    expect(await write(1, refused(7_000))).toBe(false);
    expect(pace.perSecond).toBe(25);
    const before = clock.time;
    expect(await write(1)).toBe(true);
    expect(clock.time - before).toBeGreaterThanOrEqual(7_000);
  });

  it("waits longer with each failure in a row", async () => {
    const { clock, write } = paceOf();
    const pauses: number[] = [];
    for (let i = 0; i < 4; i++) {
      await write(0, new Error("connection refused"));
      const before = clock.time;
      await write(0, refused());
      pauses.push(clock.time - before);
    }
    expect(pauses).toEqual([...pauses].sort((a, b) => a - b));
    expect(pauses[3]).toBeGreaterThan(4 * pauses[0]);
  });

  it.each([404, 409, 422])("is not slowed down by an answer %i: that is about one object", async (status) => {
    const { clock, pace, write } = paceOf();
    expect(await write(1, ApiError.of(status, {}))).toBe(false);
    expect(pace.perSecond).toBe(50);
    await write(0);
    expect(clock.time).toBe(1_001);
  });

  it("keeps a limit on writes under way, and goes on when one of them ends", async () => {
    const { pace, signal } = paceOf();
    const ends: (() => void)[] = [];
    for (let i = 0; i < 4; i++) {
      await pace.turn(signal);
      void pace.make(() => new Promise<void>((resolve) => ends.push(resolve)));
    }
    let came = false;
    const fifth = pace.turn(signal).then(() => {
      came = true;
    });
    for (let i = 0; i < 20; i++) await Promise.resolve();
    expect(came).toBe(false);
    ends[0]();
    await fifth;
    for (const end of ends) end();
  });

  it("keeps nobody waiting who is told to stop", async () => {
    const { pace } = paceOf({ ...LIMITS, together: 1 });
    const end = new AbortController();
    await pace.turn(end.signal);
    void pace.make(() => new Promise<void>(() => undefined));
    const waiting = pace.turn(end.signal);
    end.abort();
    await waiting;
  });
});
