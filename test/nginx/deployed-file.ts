/** A configuration of `deploy/`, as it stands there, at the places and ports of a test. */
import { readFileSync } from "node:fs";
import type { NginxConfigurationOptions } from "../../controller/proxies/nginx/configuration-options.js";

/**
 * The text of a file of `deploy/`. What it says of an installed system is replaced: the run folder, our own files, addresses and ports, the user
 * of the workers, and `others`, from what stands there to what is to stand.
 */
export function deployedText(
  file: string,
  options: NginxConfigurationOptions,
  others: readonly (readonly [string, string])[],
): string {
  const { http, https, user, errorLog } = options;
  const text = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), "utf8");
  const places: (readonly [string, string])[] = [
    ...others,
    ["/usr/lib/njet-kic/njet-kic-core.so", options.library],
    ["/usr/lib/njet-kic", options.packageRoot],
    ["/run/njet-kic", options.runDirectory],
    ["0.0.0.0:80 ", `127.0.0.1:${http?.port} `],
    ["[::]:80 ", `[::1]:${http?.port} `],
    ["0.0.0.0:443 ", `127.0.0.1:${https?.port} `],
    ["[::]:443 ", `[::1]:${https?.port} `],
    ["error_log stderr", errorLog === "stderr" ? "error_log stderr" : `error_log "${errorLog}"`],
    ["worker_processes auto;", `worker_processes 1;${user ? ` user ${user.name} ${user.group};` : ""}`],
  ];
  return places.reduce((all, [from, to]) => all.replaceAll(from, to), text);
}
