import type { Problem, ProblemList } from "./problem.js";
import { quote } from "./problem.js";
import type { Shape } from "./shape.js";

/** Long enough for every list that a real object has; keeps the cost of a hostile one bounded. */
export const MAX_ITEMS = 10_000;
export const MAX_TEXT = 4096;
const CONTROL_CHARACTER = /[\x00-\x1f\x7f]/;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/**
 * One value inside an object that came as unknown JSON, together with its path and the list that its problems go to.
 * Reading never throws: a reader returns undefined where there is nothing usable, and has then reported why, except
 * for absent optional fields. null counts as absent, as the API server treats it. Only own properties are seen.
 * Messages never show the value itself unless a caller quotes it, so Secrets can be read with it too.
 */
export class Field {
  readonly value: unknown;
  readonly path: string;
  readonly problems: ProblemList;

  constructor(value: unknown, path: string, problems: ProblemList) {
    this.value = value;
    this.path = path;
    this.problems = problems;
  }

  get present(): boolean {
    return this.value !== undefined && this.value !== null;
  }

  /** Says what else a schema knows of this value; its reader checks that itself. The first shape of a value counts. */
  shaped(_shape: Shape): this {
    return this;
  }

  error(code: Problem["code"], message: string): void {
    this.problems.error(this.path, code, message);
  }

  warning(code: Problem["code"], message: string): void {
    this.problems.warning(this.path, code, message);
  }

  /** The field `name` of a map; an absent field if this is no map (which `map` reports). */
  get(name: string): Field {
    const owner = this.value;
    const value = isMap(owner) && Object.hasOwn(owner, name) ? owner[name] : undefined;
    return new Field(value, this.#childPath(name), this.problems);
  }

  /** True if the value is a map. Anything else that is present is an error. */
  isMap(): boolean {
    if (!this.present) return false;
    if (isMap(this.value)) return true;
    this.#wrongType("a map");
    return false;
  }

  /** True if a map is there; absence is an error as well. */
  isRequiredMap(): boolean {
    return this.required() && this.isMap();
  }

  /** The fields of a map by name, in their order; empty if absent or no map. */
  entries(): [string, Field][] {
    if (!this.isMap()) return [];
    const names = Object.keys(this.value as object);
    if (names.length > MAX_ITEMS) this.error("LIMIT_EXCEEDED", `more than ${MAX_ITEMS} entries`);
    return names.slice(0, MAX_ITEMS).map((name) => [name, this.get(name)]);
  }

  /** The entries of a list, of which `max` may be there; empty if absent or no list. */
  items(max = MAX_ITEMS): Field[] {
    if (!this.present) return [];
    if (!Array.isArray(this.value)) {
      this.#wrongType("a list");
      return [];
    }
    if (this.value.length > max) this.error("LIMIT_EXCEEDED", `more than ${max} entries`);
    return this.value
      .slice(0, max)
      .map((item: unknown, index) => new Field(item, `${this.path}[${index}]`, this.problems));
  }

  /** The entries of a list that must have from `least` to `max` of them. */
  requiredItems(least = 1, max = MAX_ITEMS): Field[] {
    if (!this.required()) return [];
    const items = this.items(max);
    if (Array.isArray(this.value) && items.length < least) {
      this.error("FIELD_REQUIRED", `needs at least ${least} ${least === 1 ? "entry" : "entries"}`);
    }
    return items;
  }

  /** A text of at most `max` characters. It may be empty. */
  text(max = MAX_TEXT): string | undefined {
    if (!this.present) return undefined;
    if (typeof this.value !== "string") {
      this.#wrongType("a text", typeof this.value === "object" ? "" : "; put it in quotes");
      return undefined;
    }
    if (this.value.length > max) {
      this.error("LIMIT_EXCEEDED", `longer than ${max} characters`);
      return undefined;
    }
    return this.value;
  }

  /** A text without control characters that is there and not empty. */
  requiredLine(): string | undefined {
    return this.required() ? this.line() : undefined;
  }

  /** A text without control characters; if present it must not be empty. */
  line(): string | undefined {
    const text = this.text();
    if (text === undefined) return undefined;
    if (text === "") {
      this.error("FIELD_REQUIRED", "must not be empty");
      return undefined;
    }
    if (CONTROL_CHARACTER.test(text)) {
      this.error("TEXT_INVALID", `control characters are not allowed in ${quote(text)}`);
      return undefined;
    }
    return text;
  }

  /** A text that is one of `choices`. */
  choice<T extends string>(choices: readonly T[]): T | undefined {
    const text = this.text();
    if (text === undefined) return undefined;
    const found = choices.find((choice) => choice === text);
    if (found === undefined) this.error("ENUM_INVALID", `${quote(text)} is none of ${choices.join(", ")}`);
    return found;
  }

  /** A whole number from `min` to `max`. */
  integer(min: number, max: number): number | undefined {
    if (!this.present) return undefined;
    if (typeof this.value !== "number") {
      this.#wrongType("a whole number", typeof this.value === "string" ? "; write it without quotes" : "");
      return undefined;
    }
    if (!Number.isInteger(this.value) || this.value < min || this.value > max) {
      this.error("NUMBER_RANGE", `must be a whole number from ${min} to ${max}`);
      return undefined;
    }
    return this.value;
  }

  boolean(): boolean | undefined {
    if (!this.present) return undefined;
    if (typeof this.value !== "boolean") {
      this.#wrongType("true or false");
      return undefined;
    }
    return this.value;
  }

  /** True if the field is there; its absence is an error. */
  required(): boolean {
    if (!this.present) this.error("FIELD_REQUIRED", "is missing");
    return this.present;
  }

  /** Reports an error if the field is there at all. */
  refuse(code: Problem["code"], message: string): void {
    if (this.present) this.error(code, message);
  }

  /** Warns that the field is checked but does not act in this version. */
  warnInactive(): void {
    if (this.present) this.warning("NOT_YET_ACTIVE", "is checked, but does not act in this version");
  }

  /** Whether `enable` of this map is true. A map that leaves it out was hardly meant to do nothing: that is a warning. */
  isEnabled(): boolean {
    const enable = this.get("enable");
    if (!enable.present) this.warning("FIELD_NO_EFFECT", "is not switched on; add enable: true, or remove it");
    return enable.boolean() === true;
  }

  /** Reads this field's map as having exactly one of `names`; undefined, with an error, otherwise. */
  exactlyOne<T extends string>(names: readonly T[]): T | undefined {
    const found = names.filter((name) => this.get(name).present);
    if (found.length === 1) return found[0];
    const given = found.length === 0 ? "none is" : `${found.join(" and ")} are`;
    this.error("FIELD_CONFLICT", `needs exactly one of ${names.join(", ")}; ${given} given`);
    return undefined;
  }

  /** Warns about every field of this map that is not among `names`: a typo must not be silent. */
  warnUnknown(names: readonly string[]): void {
    if (!isMap(this.value)) return;
    for (const name of Object.keys(this.value)) {
      if (names.includes(name)) continue;
      const meant = names.find((known) => sameLetters(known, name));
      const hint = meant === undefined ? "" : `; is ${meant} meant?`;
      this.problems.warning(this.#childPath(name), "FIELD_UNKNOWN", `this field is not known and has no effect${hint}`);
    }
  }

  #wrongType(expected: string, hint = ""): void {
    this.error("FIELD_TYPE", `must be ${expected}, not ${typeName(this.value)}${hint}`);
  }

  #childPath(name: string): string {
    if (!PLAIN_NAME.test(name)) return `${this.path}[${quote(name)}]`;
    return this.path === "" ? name : `${this.path}.${name}`;
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  if (typeof value === "string") return "a text";
  return `a ${typeof value}`;
}

function sameLetters(a: string, b: string): boolean {
  const letters = (text: string) => text.toLowerCase().replace(/[-_]/g, "");
  return letters(a) === letters(b);
}
