import { type FSWatcher, watch } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectChange } from "../model/routing-model.js";
import type { FileProblem } from "./file-problem.js";
import { DEFAULT_LIMITS, type FileLimits, FileStore } from "./file-store.js";
import type { DuplicateObject } from "./object-registry.js";
import { isObjectFile, scanFolder } from "./scan.js";

export interface FolderOptions {
  limits: FileLimits;
  /** Quiet time after an event before files are looked at, so that a write in pieces is read once. Milliseconds. */
  quietMs: number;
  /** Longest wait while events keep coming. */
  maxWaitMs: number;
  /** Time between looks at the whole folder, for what watching misses (network file systems, links to elsewhere). */
  rescanMs: number;
}

const DEFAULT_OPTIONS: FolderOptions = { limits: DEFAULT_LIMITS, quietMs: 10, maxWaitMs: 40, rescanMs: 30_000 };

/** Called with what is different; also with no changes, if only the problems are different. */
export type FolderListener = (changes: ObjectChange[]) => void;

/**
 * The objects of a folder of YAML and JSON files, kept up to date. Each folder is watched by itself; an event makes only
 * the file it names be read again. Anything else (new folders, the swap of a ConfigMap's link) makes the whole folder be
 * looked at, and still only files that changed are read.
 */
export class FolderSource {
  readonly #root: string;
  readonly #listener: FolderListener;
  readonly #options: FolderOptions;
  readonly #store: FileStore;
  readonly #watchers = new Map<string, { watcher: FSWatcher; identity: string }>();
  readonly #touched = new Set<string>();
  #scanNeeded = false;
  #unreadableFolders: FileProblem[] = [];
  #timer: NodeJS.Timeout | undefined;
  #firstEvent = 0;
  #rescanTimer: NodeJS.Timeout | undefined;
  #work: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(root: string, listener: FolderListener, options: Partial<FolderOptions> = {}) {
    this.#root = root;
    this.#listener = listener;
    this.#options = { ...DEFAULT_OPTIONS, ...options };
    this.#store = new FileStore(root, this.#options.limits);
  }

  /** How many files were read so far. */
  get reads(): number {
    return this.#store.reads;
  }

  /**
   * Reads the folder, delivers what it holds before it resolves, and goes on watching. An empty folder calls no listener;
   * one that cannot be read is a problem, no error.
   */
  async start(): Promise<void> {
    this.#scanNeeded = true;
    await this.#enqueue();
    if (this.#closed) return;
    this.#rescanTimer = setInterval(() => this.#schedule(undefined), this.#options.rescanMs);
    this.#rescanTimer.unref();
  }

  /** Problems of files, in the order of their names. */
  problems(): FileProblem[] {
    return [...this.#unreadableFolders, ...this.#store.problems()].sort((a, b) => (a.file < b.file ? -1 : 1));
  }

  /** Objects that stand in several places. */
  duplicates(): DuplicateObject[] {
    return this.#store.duplicates();
  }

  /** Stops watching; resolves when no work is under way any more. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#rescanTimer);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
    await this.#work;
  }

  /** Waits until the events pause. `path` is what an event named, undefined for a look at everything. */
  #schedule(path: string | undefined): void {
    if (this.#closed) return;
    if (path === undefined) this.#scanNeeded = true;
    else this.#touched.add(path);
    const now = performance.now();
    if (this.#timer === undefined) this.#firstEvent = now;
    clearTimeout(this.#timer);
    const left = this.#firstEvent + this.#options.maxWaitMs - now;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        void this.#enqueue();
      },
      Math.max(0, Math.min(this.#options.quietMs, left)),
    );
  }

  /** One look at a time, in order. */
  #enqueue(): Promise<void> {
    const look = this.#work.then(() => (this.#closed ? undefined : this.#look()));
    this.#work = look.catch(() => {});
    return look;
  }

  async #look(): Promise<void> {
    const problemsBefore = JSON.stringify([this.problems(), this.duplicates()]);
    const touched = [...this.#touched];
    this.#touched.clear();
    const files: string[] = [];
    for (const path of touched) if (this.#store.has(path) || (await this.#isNewFile(path))) files.push(path);
    const changes = await this.#store.refresh(files);
    if (this.#scanNeeded) changes.push(...(await this.#scan()));
    if (this.#closed) return;
    const problemsDiffer = JSON.stringify([this.problems(), this.duplicates()]) !== problemsBefore;
    if (changes.length > 0 || problemsDiffer) this.#listener(changes);
  }

  async #scan(): Promise<ObjectChange[]> {
    this.#scanNeeded = false;
    const found = await scanFolder(this.#root, (folder, identity) => this.#watch(folder, identity));
    const message = "cannot be listed";
    this.#unreadableFolders = found.unreadable.map((folder) => ({
      file: folder || ".",
      code: "FILE_UNREADABLE",
      message,
    }));
    const changes: ObjectChange[] = [];
    const files = new Set(found.files);
    for (const file of [...this.#store.files()]) {
      if (!files.has(file) && !isBelow(file, found.unreadable)) changes.push(...this.#store.remove(file));
    }
    changes.push(...(await this.#store.refresh(found.files, found.links)));
    for (const [folder, { watcher }] of this.#watchers) {
      if (found.folders.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    return changes;
  }

  /** True for a plain file that may hold objects. Folders and links ask for a look at everything; the rest is ignored. */
  async #isNewFile(path: string): Promise<boolean> {
    try {
      const info = await lstat(join(this.#root, path));
      if (info.isDirectory() || info.isSymbolicLink()) this.#scanNeeded = true;
      return info.isFile() && isObjectFile(path.slice(path.lastIndexOf("/") + 1));
    } catch {
      if (this.#watchers.has(path)) this.#scanNeeded = true;
      return false;
    }
  }

  #watch(folder: string, identity: string): void {
    const known = this.#watchers.get(folder);
    if (this.#closed || known?.identity === identity) return;
    known?.watcher.close();
    this.#watchers.delete(folder);
    try {
      const watcher = watch(join(this.#root, folder), (_event, name) => {
        this.#schedule(name === null ? undefined : folder === "" ? name : `${folder}/${name}`);
      });
      watcher.on("error", () => this.#forget(folder, watcher));
      this.#watchers.set(folder, { watcher, identity });
    } catch {
      // No watch to be had (limit of the system): the look at the whole folder finds the changes.
    }
  }

  #forget(folder: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(folder)?.watcher === watcher) this.#watchers.delete(folder);
    this.#schedule(undefined);
  }
}

function isBelow(file: string, folders: readonly string[]): boolean {
  return folders.some((folder) => folder === "" || file.startsWith(`${folder}/`));
}
