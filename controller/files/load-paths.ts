import { stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ObjectChange } from "../model/routing-model.js";
import { refText } from "../resources/object-ref.js";
import type { FileProblem } from "./file-problem.js";
import { FileStore } from "./file-store.js";
import type { DuplicateObject } from "./object-registry.js";
import { scanFolder } from "./scan.js";

/** What files and folders hold, read once. */
export interface LoadedObjects {
  objects: ObjectChange[];
  problems: FileProblem[];
  duplicates: DuplicateObject[];
}

/**
 * Reads files and folders once, without watching them. Never rejects: what cannot be read is a problem. An object in
 * several places counts where it stands first, by file name and position.
 */
export async function loadPaths(paths: readonly string[]): Promise<LoadedObjects> {
  const store = new FileStore("");
  const objects = new Map<string, ObjectChange>();
  const problems: FileProblem[] = [];
  const files: string[] = [];
  for (const path of paths) files.push(...(await filesAt(path, problems)));
  for (const change of await store.refresh(files)) objects.set(refText(change), change);
  for (const file of files) if (!store.has(file)) problems.push(missing(file));
  return {
    objects: [...objects.values()],
    problems: [...problems, ...store.problems()],
    duplicates: store.duplicates(),
  };
}

async function filesAt(path: string, problems: FileProblem[]): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [join(dirname(path), basename(path))];
  } catch {
    problems.push(missing(path));
    return [];
  }
  const found = await scanFolder(path);
  for (const folder of found.unreadable) {
    problems.push({ file: join(path, folder), code: "FILE_UNREADABLE", message: "cannot be listed" });
  }
  return found.files.map((file) => join(path, file));
}

function missing(file: string): FileProblem {
  return { file, code: "FILE_UNREADABLE", message: "does not exist or cannot be read" };
}
