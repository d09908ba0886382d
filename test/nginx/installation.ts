import { findNginx, type NginxInstallation, PartUnavailable } from "../../controller/proxies/nginx/parts.js";

let found: NginxInstallation | undefined;

/** True with `NJET_KIC_TEST_SERVER=opennjet`, which has the tests of requests run over OpenNJet. */
export const OVER_OPENNJET = process.env.NJET_KIC_TEST_SERVER === "opennjet";

/**
 * Why there is no NGINX here for tests, or no OpenNJet to run them over; undefined if there is one. Printed once for each file
 * that would have used it.
 */
export const noNginx: string | undefined = OVER_OPENNJET
  ? (await import("../opennjet/real-installation.js")).noOpenNjet
  : await findNginx({ unpacked: true }).then(
      (installation) => {
        found = installation;
        return undefined;
      },
      (error: unknown) => {
        if (!(error instanceof PartUnavailable)) throw error;
        console.warn(`tests with NGINX are skipped: ${error.message}`);
        return error.message;
      },
    );

/** Debian's NGINX with the Lua module, unpacked into the cache folder. */
export async function installation(): Promise<NginxInstallation> {
  if (found === undefined) throw new Error(noNginx);
  return found;
}
