import { afterEach, describe } from "vitest";
import { RequestNginx } from "../nginx/request-nginx.js";
import { runCleanups } from "../support/harness.js";
import { carriedOver } from "./carried-real.js";
import { nothingBreaksOut } from "./object-break-out.js";
import { noOpenNjet, openNjetWith } from "./real-installation.js";

afterEach(runCleanups);

describe.skipIf(noOpenNjet)("over OpenNJet, no text of an object gets out of its place:", () =>
  nothingBreaksOut(async () => {
    const njet = await RequestNginx.start([], { flavour: openNjetWith("locations") });
    const { carrier } = await carriedOver(njet);
    return { carrier, http: njet.http };
  }),
);
