import { describe, expect, it } from "vitest";
import { noCluster, programs } from "./cluster-support.js";
import { namespaceCommand, runScenario } from "./traffic/namespace.js";

const way = namespaceCommand();

interface Observed {
  duplicates: Record<string, number>;
  failures: string[];
  answered: number;
  status: number;
}

describe.skipIf(noCluster || way === undefined)("requests, with endpoints of the cluster", () => {
  it("follow them without one failure while endpoints move and the API server is killed and comes back", async () => {
    const observed = (await runScenario(way ?? [], "endpoints", programs ?? "")) as Observed;
    expect(observed.failures).toEqual([]);
    expect(observed.answered).toBeGreaterThan(100);
    expect(observed.status).toBe(0);
    // The second peer stands in two slices and counts once.
    expect(observed.duplicates).toEqual({ "10.1.0.1": 10, "10.1.0.2": 10, "10.1.0.3": 10 });
  }, 180_000);

  it("and checks of them are told of in Events of the object, when a peer goes down and when it is back", async () => {
    const object = "Ingress/checked";
    expect(await runScenario(way ?? [], "health-events", programs ?? "")).toEqual({
      down: { type: "Warning", object, note: expect.stringMatching(/^peer 10\.1\.0\.2:8080 of [\w:]+ is down: /) },
      up: { type: "Normal", object, note: expect.stringMatching(/^peer 10\.1\.0\.2:8080 of [\w:]+ is up: /) },
    });
  }, 180_000);
});
