/** The OpenNJet that `NJET_PREFIX` names, for tests. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PartUnavailable } from "../../controller/proxies/nginx/parts.js";
import { controlFile, openNjetConfiguration } from "../../controller/proxies/opennjet/configuration.js";
import { type Carrier, findOpenNjet, type OpenNjetInstallation } from "../../controller/proxies/opennjet/parts.js";
import type { Flavour } from "../nginx/request-nginx.js";

let found: OpenNjetInstallation | undefined;

/** Why there is no OpenNJet here for tests; undefined if there is one. Printed once for each file that would have used it. */
export const noOpenNjet: string | undefined = await findOpenNjet(process.env.NJET_PREFIX, "locations").then(
  (installation) => {
    found = installation;
    return undefined;
  },
  (error: unknown) => {
    if (!(error instanceof PartUnavailable)) throw error;
    console.warn(`tests with OpenNJet are skipped: ${error.message}`);
    return error.message;
  },
);

export function openNjet(): OpenNjetInstallation {
  if (found === undefined) throw new Error(noOpenNjet);
  return found;
}

/** OpenNJet for the tests of requests on NGINX. */
export const OPENNJET: Flavour = openNjetWith("core");

/** OpenNJet with a carrier; its control API is on `api.sock` in the folder. */
export function openNjetWith(carrier: Carrier): Flavour {
  return {
    async installation() {
      return { ...openNjet(), modules: [] };
    },
    configuration(options, folder) {
      const text = openNjetConfiguration({
        ...options,
        // Its workers read the files of certificates that its maps name.
        ...(process.getuid?.() === 0 ? { user: { name: "root", group: "root" } } : {}),
        carrier,
        modulesFolder: openNjet().modules,
        api: { socket: join(folder, "api.sock") },
      });
      writeFileSync(controlFile(folder), text.control, { mode: 0o600 });
      for (const name of ["data", "logs"]) mkdirSync(join(folder, name), { recursive: true });
      return text.data;
    },
  };
}
