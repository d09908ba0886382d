import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, it } from "vitest";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { modelOf, strictVectors } from "../model/model-support.js";
import { StandIns } from "../proxy/vector-peers.js";
import { holdsOverHttp } from "../proxy/vector-requests.js";
import { runCleanups } from "../support/harness.js";
import { type Flavour, RequestNginx } from "./request-nginx.js";

export const STAND_INS = "stand-ins.json";

/** Has workers connect to the stand-in of the peer that was picked; splits fall as random number 0 has it. */
const HOOKS = `
  do
    local balancer, cjson = require "ngx.balancer", require "cjson"
    local connect = balancer.set_current_peer
    function balancer.set_current_peer(id)
      local file = io.open(STAND_INS)
      local places = cjson.decode(file:read("*a"))
      file:close()
      return connect(places[id])
    end
    require("balancer.worker").random = function() return 0 end
  end
`;

/** The text of a configuration with these hooks; they read `stand-ins.json` in the folder for temporary files. */
export function withStandIns(text: string): string {
  const file = JSON.stringify(join(tempFolder(text), STAND_INS));
  return text.replace("init_by_lua_block {", `init_by_lua_block {${HOOKS.replace("STAND_INS", file)}`);
}

/** Tests, one for each strict vector, over a server of NGINX's family with the core inside. */
export function strictVectorsOver(flavour?: Flavour): void {
  const standIns = new StandIns();
  let nginx: RequestNginx;
  let answered = 0;

  beforeAll(async () => {
    nginx = await RequestNginx.start([], {
      ...(flavour && { flavour }),
      trustedProxies: ["127.0.0.1"],
      edit: withStandIns,
    });
    answered = nginx.accessLog().length;
  }, 60_000);
  afterAll(async () => {
    await runCleanups();
    await standIns.close();
  });

  for (const vector of strictVectors()) {
    it(`of ${vector.name} get the answers that they ask for`, async () => {
      const { steps } = new Planner().planFull(modelOf(vector.objects).snapshot());
      for (const step of steps) if (step.step === "set-upstream") await standIns.open(step.upstream.peers.peers);
      writeFileSync(join(nginx.temp, STAND_INS), JSON.stringify(standIns.places()));
      await nginx.apply(...steps);
      const before = answered;
      await holdsOverHttp(vector, {
        http: nginx.http,
        https: nginx.https,
        logged: async (count) => (await nginx.logLines(before + count)).slice(before),
      });
      answered += vector.cases.length;
      await nginx.apply(...steps.toReversed().flatMap(removal));
    });
  }
}

/** Where workers can read. */
function tempFolder(text: string): string {
  return /proxy_temp_path "(.*)\/proxy"/.exec(text)?.[1] ?? "";
}

function removal(step: PlanStep): PlanStep[] {
  switch (step.step) {
    case "set-host":
      return [{ step: "remove-host", pattern: step.rules.pattern }];
    case "set-upstream":
      return [{ step: "remove-upstream", key: step.upstream.peers.key }];
    case "set-certificate":
      return [{ step: "remove-certificate", host: step.certificate.host }];
    default:
      return [];
  }
}
