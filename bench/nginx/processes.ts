/** What processes use, of Linux: all figures are of whole processes, with every thread of theirs. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** A process and all that it has started. */
export function treeOf(pid: number): number[] {
  const found = [pid];
  for (const one of found) found.push(...childrenOf(one));
  return found;
}

function childrenOf(pid: number): number[] {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const texts = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"));
    return texts.join(" ").split(" ").filter(Boolean).map(Number);
  } catch {
    // It has just ended.
    return [];
  }
}

/** Nanoseconds of processor time so far, user and system, by the scheduler's own account. */
export function cpuOf(pids: readonly number[]): number {
  let sum = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      sum += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    }
  }
  return sum;
}

/** Resident memory in MB (10^6 bytes). What processes share counts for each of them. */
export function memoryOf(pids: readonly number[]): number {
  let sum = 0;
  for (const pid of pids) {
    const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    sum += (Number(kib) * 1024) / 1e6;
  }
  return sum;
}

/** Ties processes, and what they start from now on, to one processor. */
export function pin(pids: readonly number[], processor: number): void {
  for (const pid of pids)
    execFileSync("taskset", ["-a", "-p", "-c", String(processor), String(pid)], { stdio: "ignore" });
}
