import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "vitest";
import { RequestNginx } from "../nginx/request-nginx.js";
import { STAND_INS, withStandIns } from "../nginx/strict-vectors.js";
import { carriedOver } from "./carried-real.js";
import { strictVectorsOverLocations } from "./carried-vectors.js";
import { noOpenNjet, openNjetWith } from "./real-installation.js";

describe.skipIf(noOpenNjet)("over OpenNJet with the carrier locations, the strict vectors", () =>
  strictVectorsOverLocations(async () => {
    const flavour = openNjetWith("locations");
    const njet = await RequestNginx.start([], { flavour, trustedProxies: ["127.0.0.1"], edit: withStandIns });
    const { carrier } = await carriedOver(njet);
    const reach = (places: Record<string, string>) => writeFileSync(join(njet.temp, STAND_INS), JSON.stringify(places));
    return { carrier, http: njet.http, https: njet.https, reach };
  }),
);
