import { findNginx, type NginxInstallation, PartUnavailable } from "../../controller/proxies/nginx/parts.js";

let found: NginxInstallation | undefined;

/** Why there is no NGINX here for tests; undefined if there is one. Printed once for each file that would have used it. */
export const noNginx: string | undefined = await findNginx({ unpacked: true }).then(
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
