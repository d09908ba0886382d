import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { posix } from "node:path";

/** The text of a file; undefined where it can't be read. */
export type ReadText = (path: string) => string | undefined;

const CGROUPS = "/sys/fs/cgroup";

/**
 * Processor cores that this process may use, at least 1: those that it may run on, and no more than what the CPU limit of its container
 * amounts to, in whole cores. So newer versions of Node count by themselves (libuv 1.49); Node 20 does not look at limits.
 */
export function usableCores(read: ReadText = textOf, cores = availableParallelism()): number {
  return Math.max(1, Math.min(cores, ...limits(read).map(Math.floor)));
}

/** The limits of our group of processes and of all above it, in cores: cgroup v2 (`cpu.max`) and v1 (`cpu.cfs_quota_us`). */
function limits(read: ReadText): number[] {
  const found: number[] = [];
  const add = (quota: string | undefined, period: string | undefined) => {
    const limit = Number(quota) / Number(period);
    // Without a limit the quota is `max`, or -1.
    if (limit > 0) found.push(limit);
  };
  for (const line of (read("/proc/self/cgroup") ?? "").trim().split("\n")) {
    const [, controllers, group] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (group === undefined) continue;
    for (let at = group; ; at = posix.dirname(at)) {
      if (controllers === "") add(...pairOf(read(posix.join(CGROUPS, at, "cpu.max"))));
      if (controllers.split(",").includes("cpu")) {
        const file = (name: string) => read(posix.join(CGROUPS, "cpu", at, `cpu.cfs_${name}_us`));
        add(file("quota"), file("period"));
      }
      if (at === "/") break;
    }
  }
  return found;
}

function pairOf(text = ""): [string?, string?] {
  const [quota, period] = text.trim().split(" ");
  return [quota, period];
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
