import { describe, expect, it } from "vitest";
import { type Backend, RequestRefusedError, ServerFailureError } from "../../controller/proxies/opennjet/api/index.js";
import { BundledBackends } from "../../controller/proxies/opennjet/bundled-backends.js";
import { BundledDouble } from "../real/opennjet-double/bundled-balancer.js";

const one = (port: string): Backend[] => [{ name: "web", endpoints: [{ address: "10.0.0.1", port }] }];

function over(double: BundledDouble): BundledBackends {
  return new BundledBackends({
    api: double,
    workers: double,
    now: () => double.time,
    wait: async (milliseconds) => double.advance(milliseconds),
  });
}

describe("a post to the balancer that OpenNJet brings", () => {
  it("is done when each worker has it, and not before", async () => {
    const double = new BundledDouble({ polls: [100, 900] });
    await over(double).post(one("80"));
    expect(double.workersWith("web", "80")).toBe(2);
    expect(double.time).toBeGreaterThanOrEqual(900);
    expect(double.time).toBeLessThan(1100);
  });

  it("is sent once where nothing is lost", async () => {
    const double = new BundledDouble({ polls: [100, 900] });
    const backends = over(double);
    for (const port of ["80", "81", "82"]) await backends.post(one(port));
    expect(double.posts).toHaveLength(3);
  });

  it("comes a while after the one before, past the clock's resolution, also where that one failed", async () => {
    const double = new BundledDouble({ polls: [100] });
    const backends = over(double);
    double.refuse = 1;
    await expect(backends.post(one("80"))).rejects.toThrow("refused");
    await backends.post(one("81"));
    const [first, second] = double.tried;
    expect(second - first).toBeGreaterThanOrEqual(50);
  });

  it("is sent again where a worker has missed it, since its clock stood still", async () => {
    const double = new BundledDouble({ polls: [100, 900] });
    const backends = over(double);
    await backends.post(one("80"));
    double.still = 1;
    await backends.post(one("81"));
    expect(double.workersWith("web", "81")).toBe(2);
    expect(double.posts).toHaveLength(3);
  });

  it("is sent again where somebody else's is read back", async () => {
    const double = new BundledDouble({ polls: [100] });
    double.overwrite = [one("9")];
    await over(double).post(one("80"));
    expect(double.workersWith("web", "80")).toBe(1);
    expect(double.posts).toHaveLength(2);
  });

  it("fails, and may be in force, where workers never take it: after the clock was set back", async () => {
    const double = new BundledDouble({ polls: [100] });
    const backends = over(double);
    await backends.post(one("80"));
    double.back = 3_600_000;
    const failed = await backends.post(one("81")).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(ServerFailureError);
    expect(failed).toMatchObject({ mayHaveApplied: true });
    double.back = 0;
    await backends.post(one("82"));
    expect(double.workersWith("web", "82")).toBe(1);
  });

  it("waits two polls for a worker that no connection comes to", async () => {
    const double = new BundledDouble({ polls: [100, 900], asked: [0] });
    await over(double).post(one("80"));
    expect(double.time).toBeGreaterThanOrEqual(2000);
    expect(double.workersWith("web", "80")).toBe(2);
  });

  it("is not sent at all with an entry that would do harm", async () => {
    const double = new BundledDouble({ polls: [100] });
    const post = over(double).post([{ name: "web" } as Backend]);
    await expect(post).rejects.toThrow(RequestRefusedError);
    expect(double.posts).toEqual([]);
  });

  it("can be read back as it was given; before the first one there is none", async () => {
    const double = new BundledDouble({ polls: [100] });
    const backends = over(double);
    expect(await backends.list()).toEqual([]);
    await backends.post(one("80"));
    expect(await backends.list()).toEqual(one("80"));
  });

  it("does not pass on what our balancer has left there, and what it would do harm with", async () => {
    const double = new BundledDouble({ polls: [100] });
    const cookie = { name: "srv", path: "/", samesite: "Lax" };
    const other = { name: "cookie", mode: "persistent", cookieSessionAffinity: cookie } as const;
    await double.post([...one("80"), { name: "session", endpoints: [], sessionAffinityConfig: other }]);
    expect(await over(double).list()).toEqual(one("80"));
  });

  it("waits for the one before it", async () => {
    const double = new BundledDouble({ polls: [100, 900] });
    const backends = over(double);
    await Promise.all([backends.post(one("80")), backends.post(one("81"))]);
    expect(double.workersWith("web", "81")).toBe(2);
    expect(double.posts).toHaveLength(2);
  });
});
