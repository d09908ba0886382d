import { afterAll, beforeAll, expect, it } from "vitest";
import type { Proxy as DrivenProxy } from "../../controller/proxies/proxy.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { modelOf, strictVectors } from "../model/model-support.js";
import { StandIns } from "../proxy/vector-peers.js";
import { holdsOverHttp, type VectorProxy } from "../proxy/vector-requests.js";
import { runCleanups } from "../support/harness.js";

/** Vectors that locations can't carry, whoever balances, with what is said of the object. */
export const REFUSED: Record<string, RegExp> = {
  "vs-cookie-name-with-hyphen": /^VirtualServer\/default\/dash: .*its name stands in no variable of NGINX$/,
};

/** An OpenNJet with the carrier on it. */
export interface CarriedServer {
  carrier: DrivenProxy;
  http: number;
  https: number;
  /** Told where the stand-ins of peers are, before they are asked. */
  reach?(places: Record<string, string>): void;
}

/** Tests, one for each strict vector, over the carrier locations. */
export function strictVectorsOverLocations(
  start: (standIns: StandIns) => Promise<CarriedServer>,
  { begin = "drawn" }: Pick<VectorProxy, "begin"> = {},
): void {
  const standIns = new StandIns();
  let server: CarriedServer;

  beforeAll(async () => {
    server = await start(standIns);
    await server.carrier.complete?.();
  }, 60_000);
  afterAll(async () => {
    await runCleanups();
    await standIns.close();
  });

  for (const vector of strictVectors()) {
    const refused = REFUSED[vector.name];
    it(`of ${vector.name} ${refused ? "are refused on the object" : "get the answers that they ask for"}`, async () => {
      const plan = new Planner().planFull(modelOf(vector.objects).snapshot());
      for (const step of plan.steps) if (step.step === "set-upstream") await standIns.open(step.upstream.peers.peers);
      server.reach?.(standIns.places());
      const { failures } = await server.carrier.apply({ ...plan, full: true });
      if (refused)
        expect(failures).toMatchObject([{ code: "PROXY_UNSUPPORTED", message: expect.stringMatching(refused) }]);
      else {
        expect(failures.filter(({ inForce }) => !inForce)).toEqual([]);
        await holdsOverHttp(vector, { ...server, begin });
      }
    });
  }
}
