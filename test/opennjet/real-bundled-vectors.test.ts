import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { RequestNginx } from "../nginx/request-nginx.js";
import { STAND_INS } from "../nginx/strict-vectors.js";
import { carriedOver } from "./carried-real.js";
import { strictVectorsOverLocations } from "./carried-vectors.js";
import { noBundled, openNjetWith } from "./real-installation.js";

/** Has the balancer of OpenNJet connect to the stand-in of the peer that it has picked. */
function withStandIns(text: string, file: string): string {
  const hook = `
    do
      local balancer, cjson = require "njt.balancer", require "cjson"
      local connect = balancer.set_current_peer
      function balancer.set_current_peer(id)
        local file = io.open(${JSON.stringify(file)})
        local places = cjson.decode(file:read("*a"))
        file:close()
        return connect(places[id])
      end
    end
  `;
  return text.replace("init_by_lua_block {", `init_by_lua_block {${hook}`);
}

const missing = await noBundled();

// Round robin begins anywhere there; all else is as with our balancer, and no vector is refused besides those that it refuses.
describe.skipIf(missing)("over OpenNJet with the carrier locations and its own balancer, the strict vectors", () =>
  strictVectorsOverLocations(
    async () => {
      let file = "";
      const njet = await RequestNginx.start([], {
        flavour: openNjetWith("locations", "bundled"),
        trustedProxies: ["127.0.0.1"],
        edit: (text) => {
          file = join(/proxy_temp_path "(.*)\/proxy"/.exec(text)?.[1] ?? "", STAND_INS);
          return withStandIns(text, file);
        },
      });
      const { carrier } = await carriedOver(njet, "bundled");
      const reach = (places: Record<string, string>) => writeFileSync(file, JSON.stringify(places));
      return { carrier, http: njet.http, https: njet.https, reach };
    },
    { begin: "anywhere" },
  ),
);
