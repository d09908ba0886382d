import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { compareText } from "../model/age.js";

/** Symbolic links can make a tree endless even without a loop. */
const MAX_DEPTH = 32;

/** What was found in a folder. Paths are relative to it, with `/` between the parts. */
export interface ScanResult {
  /** Files that may hold objects. */
  files: string[];
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
  const result: ScanResult = { files: [], folders: new Set(), unreadable: [] };
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
    const info = await stat(join(root, folder), { bigint: true });
    const identity = `${info.dev}:${info.ino}`;
    if (scan.visited.has(identity)) return;
    scan.visited.add(identity);
    scan.enter(folder, identity);
    scan.result.folders.add(folder);
    const entries = await readdir(join(root, folder), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => compareText(a.name, b.name))) {
      if (entry.name.startsWith(".")) continue;
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const isFolder = entry.isDirectory() || (entry.isSymbolicLink() && (await isFolderLink(join(root, path))));
      if (!isFolder) {
        if (isObjectFile(entry.name)) scan.result.files.push(path);
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

async function isFolderLink(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
