/**
 * What may be in OpenNJet, kept over restarts of the controller: there is no list of locations to ask for. A name is noted
 * before its location is sent, and for a while after it was removed: an OpenNJet that is killed comes back with what it had
 * when it last saved.
 */
import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import type { CarriedLocation } from "./location-set.js";
import type { Question } from "./questions.js";

/** What a location is known by, and asked for. */
export type Named = Pick<CarriedLocation, "rule" | "name" | "question">;

export interface LedgerEntry extends Named {
  /** When it was removed, in milliseconds of the clock; undefined where it is wanted. */
  removed?: number;
}

export interface Ledger<T> {
  read(): Promise<T[]>;
  /** In place of all that was written before. */
  write(entries: readonly T[]): Promise<void>;
}

/** A ledger that ends with its process. */
export class MemoryLedger<T> implements Ledger<T> {
  private entries: readonly T[] = [];

  async read(): Promise<T[]> {
    return [...this.entries];
  }

  async write(entries: readonly T[]): Promise<void> {
    this.entries = [...entries];
  }
}

/** A ledger in a file of mode 0600, replaced whole. One that can't be read counts as empty, and so does a wrong entry. */
export class FileLedger<T> implements Ledger<T> {
  constructor(
    private readonly path: string,
    private readonly isEntry: (value: unknown) => value is T,
  ) {}

  async read(): Promise<T[]> {
    try {
      const entries: unknown = JSON.parse(await readFile(this.path, "utf8"));
      return Array.isArray(entries) ? entries.filter(this.isEntry) : [];
    } catch {
      return [];
    }
  }

  async write(entries: readonly T[]): Promise<void> {
    const temporary = `${this.path}.${randomBytes(6).toString("hex")}`;
    try {
      const file = await open(temporary, "wx", 0o600);
      try {
        await file.writeFile(JSON.stringify(entries));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, this.path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}

export function isLedgerEntry(value: unknown): value is LedgerEntry {
  if (typeof value !== "object" || value === null) return false;
  const { rule, name, question, removed } = value as Record<string, unknown>;
  const known = (rule === "" || rule === "~") && typeof name === "string" && isQuestion(question);
  return known && (removed === undefined || typeof removed === "number");
}

function isQuestion(value: unknown): value is Question {
  if (typeof value !== "object" || value === null) return false;
  const { host, path } = value as Record<string, unknown>;
  return typeof host === "string" && typeof path === "string";
}
