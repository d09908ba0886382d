/** The OpenNJet that `NJET_PREFIX` names, for tests. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PartUnavailable } from "../../controller/proxies/nginx/parts.js";
import { controlFile, openNjetConfiguration } from "../../controller/proxies/opennjet/configuration.js";
import {
  type BalancerName,
  type Carrier,
  findOpenNjet,
  type OpenNjetInstallation,
} from "../../controller/proxies/opennjet/parts.js";
import type { Flavour } from "../nginx/request-nginx.js";
import { QUESTIONS } from "./carrier-over.js";

let found: OpenNjetInstallation | undefined;

/** Why there is no OpenNJet here for tests; undefined if there is one. Printed once for each file that would have used it. */
export const noOpenNjet: string | undefined = await missing("own");

/** The same for one that has all that its own balancer requires; to be asked for once in a file that uses it. */
export function noBundled(): Promise<string | undefined> {
  return missing("bundled");
}

async function missing(balancer: BalancerName): Promise<string | undefined> {
  try {
    found = await findOpenNjet(process.env.NJET_PREFIX, "locations", balancer);
    return undefined;
  } catch (error) {
    if (!(error instanceof PartUnavailable)) throw error;
    console.warn(`tests with OpenNJet are skipped: ${error.message}`);
    return error.message;
  }
}

export function openNjet(): OpenNjetInstallation {
  if (found === undefined) throw new Error(noOpenNjet);
  return found;
}

/** OpenNJet for the tests of requests on NGINX. */
export const OPENNJET: Flavour = openNjetWith("core");

/** OpenNJet with a carrier; its control API is on `api.sock` in the folder. */
export function openNjetWith(carrier: Carrier, balancer: BalancerName = "own"): Flavour {
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
        balancer,
        questions: QUESTIONS,
        modulesFolder: openNjet().modules,
        api: { socket: join(folder, "api.sock") },
      });
      writeFileSync(controlFile(folder), text.control, { mode: 0o600 });
      for (const name of ["data", "logs"]) mkdirSync(join(folder, name), { recursive: true });
      return text.data;
    },
  };
}
