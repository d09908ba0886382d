import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { noCluster, programs } from "../kubernetes/cluster-support.js";
import { namespaceCommand, runProgram } from "../kubernetes/traffic/namespace.js";
import { installation, noNginx } from "./installation.js";

/** Compiled by the build: what runs in a namespace is a program of its own. */
const SCENARIOS = fileURLToPath(new URL("../../dist/test/nginx/cluster/", import.meta.url));
const way = namespaceCommand();

interface Observed extends Record<string, unknown> {
  failures: string[];
  answered: number;
  tls: { failures: string[]; answered: number };
}

function scenario(name: string): Promise<Observed> {
  return runProgram(way ?? [], `${SCENARIOS}${name}.js`, [programs ?? ""]) as Promise<Observed>;
}

describe.skipIf(noNginx || noCluster || way === undefined)("NGINX, with objects of a cluster", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  it("serves on while the API server is away, its controller and it itself are killed, and then takes what has changed", async () => {
    const { before, answered, tls, failures, ...observed } = await scenario("api-server-away");
    expect(before).toEqual({ round: 100, peers: "10.1.0.1 10.1.0.2", certificate: "first", late: 404, gone: 200 });
    const changed = { round: 1000, peers: "10.1.0.3", certificate: "second", late: 200, gone: 404 };
    expect(observed).toEqual({
      away: before,
      restarted: before,
      served: 1,
      fromJournal: changed,
      pids: true,
      status: 0,
      left: 0,
    });
    expect([failures, tls.failures]).toEqual([[], []]);
    expect(answered).toBeGreaterThan(1500);
    expect(tls.answered).toBeGreaterThan(100);
  }, 600_000);

  it("takes 4,200 changes, flaps, restarts of its controller and an API server that is away, in one run, without a failed request or a dropped WebSocket", async () => {
    const { answered, tls, failures, ...observed } = await scenario("everything");
    expect(observed).toEqual({
      done: { routes: 2000, endpoints: 2000, renewals: 200, flaps: 100, restarts: 3, away: 3 },
      strayed: 0,
      pids: true,
      status: 0,
    });
    expect([failures, tls.failures]).toEqual([[], []]);
    expect(answered).toBeGreaterThan(2000);
    console.log(`${answered} requests and ${tls.answered} handshakes during 4,200 changes`);
  }, 1_200_000);
});
