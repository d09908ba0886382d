import { readFileSync } from "node:fs";

/** User and group of a process, all of the kinds that there are (proc(5)): real, effective, saved, of the file system. */
export function whoIs(pid: number): string {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return ["Uid", "Gid"]
    .map((name) => new RegExp(`^${name}:\\t(.*)$`, "m").exec(text)?.[1].replaceAll("\t", " "))
    .join(", ");
}

/** That of a process which is one user throughout. */
export const four = ({ uid, gid }: { uid: number; gid: number }) =>
  [uid, gid].map((id) => Array(4).fill(id).join(" ")).join(", ");
