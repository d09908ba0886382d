import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestCluster } from "../real/kube/cluster.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** As the Deployment says. */
const USER = 65532;
/** Where the folder of the service account is seen from inside. */
const INSIDE = "/mnt";

/** As much of a pod as a machine without containers has. */
export interface Pod {
  /** Runs the command given to it as in the pod. */
  through: string[];
  /** Folder of the service account, as it is seen from inside. */
  accountFolder: string;
  env: NodeJS.ProcessEnv;
}

/** Everything read-only but /tmp, which is empty. */
const MOUNTS = `mount --make-rprivate / && mount --bind "$1" ${INSIDE} && mount -t tmpfs -o mode=1777,size=256m tmpfs /tmp &&
mount -o remount,bind,ro / && shift && exec "$@"`;

/**
 * What the container of the Deployment runs in, for the service account: no privileges, a user of its own, a root file
 * system that is read-only and an empty /tmp. Where that needs more than we may, the reason is printed and the command runs
 * as it is.
 */
export async function podFor(cluster: TestCluster, namespace: string, account: string): Promise<Pod> {
  const folder = join(cluster.folder, `account-${account}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "token"), await cluster.accountToken(namespace, account), { mode: 0o600 });
  writeFileSync(join(folder, "ca.crt"), cluster.ca);
  writeFileSync(join(folder, "namespace"), namespace);
  const env = {
    PATH: process.env.PATH,
    KUBERNETES_SERVICE_HOST: "127.0.0.1",
    KUBERNETES_SERVICE_PORT: String(cluster.port),
  };
  const user = [`--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"];
  const unprivileged = ["setpriv", ...user, "--bounding-set=-all", "--no-new-privs"];
  const through = ["unshare", "-m", "sh", "-c", MOUNTS, "pod", folder, ...unprivileged];
  const [command, ...rest] = [...through, process.execPath, "-e", "", join(ROOT, "dist/core.wasm")];
  const tried = process.getuid?.() === 0 ? spawnSync(command, rest, { encoding: "utf8" }) : undefined;
  if (tried?.status !== 0) {
    const reason = tried === undefined ? "we are not root" : `${tried.error?.message ?? tried.stderr}`.trim();
    console.error(
      `the command does not run under the restrictions of a pod, which needs unshare and setpriv: ${reason}`,
    );
    return { through: [], accountFolder: folder, env };
  }
  for (const file of ["token", "ca.crt", "namespace"]) chownSync(join(folder, file), USER, USER);
  chmodSync(folder, 0o755);
  return { through, accountFolder: INSIDE, env };
}
