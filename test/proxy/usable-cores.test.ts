import { availableParallelism } from "node:os";
import { describe, expect, it } from "vitest";
import { usableCores } from "../../controller/proxies/usable-cores.js";

const V2 = { "/proc/self/cgroup": "0::/\n" };
const V1 = { "/proc/self/cgroup": "9:name=systemd:/\n4:cpu,cpuacct:/\n0::/\n" };
const v1 = (quota: number) => ({
  "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": `${quota}\n`,
  "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
});

describe("Cores that may be used", () => {
  it.each<[string, Record<string, string>, number]>([
    ["are all where nobody limits them", {}, 8],
    ["are all where the limit of a container is none", { ...V2, "/sys/fs/cgroup/cpu.max": "max 100000\n" }, 8],
    ["are those of its limit", { ...V2, "/sys/fs/cgroup/cpu.max": "200000 100000\n" }, 2],
    ["are the whole ones of its limit", { ...V2, "/sys/fs/cgroup/cpu.max": "375000 100000\n" }, 3],
    ["are one where the limit is a part of one", { ...V2, "/sys/fs/cgroup/cpu.max": "50000 100000\n" }, 1],
    ["are no more than there are", { ...V2, "/sys/fs/cgroup/cpu.max": "6400000 100000\n" }, 8],
    [
      "are those of the least limit of all groups that a process is in",
      {
        "/proc/self/cgroup": "0::/pods/one/web\n",
        "/sys/fs/cgroup/pods/one/web/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/pods/one/cpu.max": "300000 100000\n",
        "/sys/fs/cgroup/pods/cpu.max": "400000 50000\n",
      },
      3,
    ],
    ["are those of a limit of the first version of cgroups", { ...V1, ...v1(400_000) }, 4],
    ["are all where that has none", { ...V1, ...v1(-1) }, 8],
    ["are all where a file makes no sense", { ...V2, "/sys/fs/cgroup/cpu.max": "\n" }, 8],
  ])("%s", (_title, files, expected) => {
    expect(usableCores((path) => files[path], 8)).toBe(expected);
  });

  it("are counted on this machine", () => {
    expect(usableCores()).toBeGreaterThanOrEqual(1);
    expect(usableCores()).toBeLessThanOrEqual(availableParallelism());
  });
});
