import { describe } from "vitest";
import { RequestNginx } from "../nginx/request-nginx.js";
import { breakOutTests } from "./break-out.js";
import { carriedOver } from "./carried-real.js";
import { noOpenNjet, openNjetWith } from "./real-installation.js";

describe.skipIf(noOpenNjet)("over OpenNJet", () =>
  breakOutTests(async () => {
    const njet = await RequestNginx.start([], { flavour: openNjetWith("locations") });
    return { ...(await carriedOver(njet)), http: njet.http };
  }),
);
