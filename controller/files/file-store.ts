import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectChange } from "../model/routing-model.js";
import type { DocumentCache } from "./documents.js";
import type { FileProblem } from "./file-problem.js";
import { readObjectFile } from "./object-file.js";
import { type DuplicateObject, ObjectRegistry } from "./object-registry.js";
import { readText } from "./read-text.js";

export interface FileLimits {
  /** Larger files are not read. */
  maxBytes: number;
}

export const DEFAULT_LIMITS: FileLimits = { maxBytes: 16 * 1024 * 1024 };

interface KnownFile {
  /** Differs whenever the file was written or replaced. */
  version: string;
  /** The text of this version; undefined if it was not readable. */
  text: string | undefined;
  cache: DocumentCache;
  /** True once the whole file was readable; what it held then is kept while it is broken. */
  wasGood: boolean;
  problems: FileProblem[];
}

type Reading =
  | { version: string; text: string }
  | { version: string; problem: Omit<FileProblem, "file"> }
  | "same"
  | "gone";

/**
 * Waiting for the file system one file at a time would make a look at a large folder slow; and what was read is parsed
 * meanwhile, so this many files are also the longest piece of work without a pause for requests.
 */
const READS_AT_ONCE = 32;

/**
 * The files of a folder and the objects in them. A file that cannot be read or parsed keeps the objects of its last good
 * state, and has a problem that says so; at the very first reading its good documents are taken.
 */
export class FileStore {
  /** How many files were read so far. */
  reads = 0;
  readonly #root: string;
  readonly #limits: FileLimits;
  readonly #files = new Map<string, KnownFile>();
  readonly #registry = new ObjectRegistry();

  constructor(root: string, limits: FileLimits = DEFAULT_LIMITS) {
    this.#root = root;
    this.#limits = limits;
  }

  has(file: string): boolean {
    return this.#files.has(file);
  }

  files(): Iterable<string> {
    return this.#files.keys();
  }

  problems(): FileProblem[] {
    return [...this.#files.values()].flatMap(({ problems }) => problems);
  }

  duplicates(): DuplicateObject[] {
    return this.#registry.duplicates();
  }

  /**
   * Reads those of the files that are not the version that is known, and returns the objects that are different then. What
   * is known about files already goes in `infos`; it must not be older than the event or look that asks for them.
   */
  async refresh(
    files: readonly string[],
    infos: ReadonlyMap<string, BigIntStats> = new Map(),
  ): Promise<ObjectChange[]> {
    const changes: ObjectChange[] = [];
    const readings: Promise<Reading>[] = [];
    let begun = 0;
    for (const [index, file] of files.entries()) {
      for (; begun < files.length && begun < index + READS_AT_ONCE; begun += 1) {
        const next = files[begun];
        readings.push(this.#read(next, this.#files.get(next)?.version, infos.get(next)));
      }
      changes.push(...this.#apply(file, await readings.shift()!));
    }
    return changes;
  }

  /** The file is no longer there. */
  remove(file: string): ObjectChange[] {
    this.#files.delete(file);
    return this.#registry.replaceFile(file, []);
  }

  #apply(file: string, reading: Reading): ObjectChange[] {
    if (reading === "same") return [];
    if (reading === "gone") return this.remove(file);
    const known = this.#files.get(file);
    const { version } = reading;
    if ("problem" in reading) {
      this.#files.set(file, keepLastGood(known, version, undefined, [{ file, ...reading.problem }]));
      return [];
    }
    const { text } = reading;
    if (known !== undefined && known.text === text) {
      // Written anew with the same content, as all files of a ConfigMap are when one of them changes.
      this.#files.set(file, { ...known, version });
      return [];
    }
    const content = readObjectFile(file, text, known?.cache);
    if (content.broken && known?.wasGood === true) {
      this.#files.set(file, keepLastGood(known, version, text, content.problems));
      return [];
    }
    const { cache, problems } = content;
    this.#files.set(file, { version, text, cache, wasGood: !content.broken, problems });
    return this.#registry.replaceFile(file, content.objects);
  }

  /**
   * `known` is the version of the last reading. The version of this one is that before reading: a write in the meantime
   * makes the next look read the file again. Never rejects.
   */
  async #read(file: string, known: string | undefined, earlier: BigIntStats | undefined): Promise<Reading> {
    const path = join(this.#root, file);
    try {
      const info = earlier ?? (await stat(path, { bigint: true }));
      const version = versionOf(info);
      if (version === known) return "same";
      if (!info.isFile()) return { version, problem: { code: "FILE_UNREADABLE", message: "is no regular file" } };
      if (info.size > this.#limits.maxBytes) {
        const message = `is larger than ${this.#limits.maxBytes} bytes`;
        return { version, problem: { code: "FILE_LIMIT", message } };
      }
      this.reads += 1;
      return { version, text: await readText(path, Number(info.size)) };
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
      if (code === "ENOENT" || code === "ENOTDIR") return "gone";
      return { version: code, problem: { code: "FILE_UNREADABLE", message: `cannot be read: ${code}` } };
    }
  }
}

function keepLastGood(
  known: KnownFile | undefined,
  version: string,
  text: string | undefined,
  problems: FileProblem[],
): KnownFile {
  return { version, text, cache: known?.cache ?? new Map(), wasGood: known?.wasGood ?? false, problems };
}

function versionOf(info: BigIntStats): string {
  return `${info.dev}:${info.ino}:${info.size}:${info.mtimeNs}:${info.ctimeNs}`;
}
