import { type BigIntStats, type Dirent, stat } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { compareText } from "../model/age.js";

/** As stat of node:fs/promises, in half the time. */
const statOf = promisify(stat);

/** Symbolic links can make a tree endless even without a loop. */
const MAX_DEPTH = 32;

/** What was found in a folder. Paths are relative to it, with `/` between the parts. */
export interface ScanResult {
  /** Files that may hold objects. */
  files: string[];
  /** What the links among the files led to when the folder was listed. */
  links: Map<string, BigIntStats>;
  /** Subfolders, and `""` for the folder itself. */
  folders: Set<string>;
  /** Folders that could not be listed or lie too deep; what they held before is not known to be gone. */
  unreadable: string[];
}

export type EnterFolder = (folder: string, identity: string) => void;

/** Files that hold objects, by their name. */
export function isObjectFile(name: string): boolean {
  return /\.(ya?ml|json)$/.test(name) && !name.startsWith(".");
}

/**
 * Lists a folder with its subfolders. Names with a leading dot are passed over: the `..data` of a mounted ConfigMap
 * holds the same files again. Links are followed, each folder once. `enter` is called before a folder is listed, so that
 * a watch set there misses nothing; `identity` tells a folder from another one that took its name.
 */
export async function scanFolder(root: string, enter: EnterFolder = () => {}): Promise<ScanResult> {
  const result: ScanResult = { files: [], links: new Map(), folders: new Set(), unreadable: [] };
  await scanInto(root, "", 0, { result, enter, visited: new Set() });
  result.files.sort(compareText);
  return result;
}

interface Scan {
  result: ScanResult;
  enter: EnterFolder;
  /** `device:inode` of the folders that were entered: a link back to one of them is not followed. */
  visited: Set<string>;
}

async function scanInto(root: string, folder: string, depth: number, scan: Scan): Promise<void> {
  try {
    const info = await statOf(join(root, folder), { bigint: true });
    const identity = `${info.dev}:${info.ino}`;
    if (scan.visited.has(identity)) return;
    scan.visited.add(identity);
    scan.enter(folder, identity);
    scan.result.folders.add(folder);
    const listed = await readdir(join(root, folder), { withFileTypes: true });
    const entries = listed.filter(({ name }) => !name.startsWith(".")).sort((a, b) => compareText(a.name, b.name));
    const targets = await linkTargets(join(root, folder), entries);
    for (const [index, entry] of entries.entries()) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const target = targets[index];
      if (!entry.isDirectory() && !target?.isDirectory()) {
        if (!isObjectFile(entry.name)) continue;
        scan.result.files.push(path);
        if (target !== undefined) scan.result.links.set(path, target);
      } else if (depth < MAX_DEPTH) {
        await scanInto(root, path, depth + 1, scan);
      } else {
        scan.result.unreadable.push(path);
      }
    }
  } catch (error) {
    // A subfolder that went away meanwhile is gone; the root and folders that refuse are not known to be.
    const gone = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (!gone || folder === "") scan.result.unreadable.push(folder);
  }
}

/** What each entry leads to if it is a link. All are asked at once: every file of a mounted ConfigMap is a link. */
function linkTargets(folder: string, entries: readonly Dirent[]): Promise<(BigIntStats | undefined)[]> {
  return Promise.all(
    entries.map(async (entry) => {
      if (!entry.isSymbolicLink()) return undefined;
      try {
        return await statOf(join(folder, entry.name), { bigint: true });
      } catch {
        return undefined;
      }
    }),
  );
}
