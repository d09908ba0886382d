import { Field, MAX_ITEMS, MAX_TEXT } from "../resources/field.js";
import { ProblemList } from "../resources/problem.js";
import type { Shape } from "../resources/shape.js";
import { exactlyOneOf } from "./cel.js";
import type { FieldRecord } from "./field-record.js";

/**
 * A field that is not there, and notes what is asked of it. Texts and numbers read from it are undefined; every map is there,
 * every list has one entry. Where a reader goes different ways (is the field given, is it switched on, which one of several
 * is it), the number of the walk decides, so that many walks go every way.
 */
export class RecordingField extends Field {
  readonly #record: FieldRecord;
  readonly #walk: number;

  constructor(record: FieldRecord, walk: number) {
    super(undefined, record.path, new ProblemList());
    this.#record = record;
    this.#walk = walk;
  }

  override get present(): boolean {
    return this.#choose("present", 2) === 1;
  }

  override shaped(shape: Shape): this {
    this.#record.shape ??= shape;
    return this;
  }

  override get(name: string): RecordingField {
    return new RecordingField(this.#record.field(name), this.#walk);
  }

  override isMap(): boolean {
    this.#record.is("map");
    this.#record.visits.add(this.#walk);
    return true;
  }

  override isRequiredMap(): boolean {
    return this.required() && this.isMap();
  }

  override entries(): [string, Field][] {
    this.isMap();
    this.#record.size = [0, MAX_ITEMS];
    return [["name", new RecordingField(this.#record.entries(), this.#walk)]];
  }

  override items(max = MAX_ITEMS): Field[] {
    this.#record.is("list");
    this.#record.size ??= [0, max];
    return [new RecordingField(this.#record.entries(), this.#walk)];
  }

  override requiredItems(least = 1, max = MAX_ITEMS): Field[] {
    this.required();
    this.#record.size = [least, max];
    return this.items(max);
  }

  override text(max = MAX_TEXT): undefined {
    this.#record.is("text");
    this.#record.maxLength = max;
  }

  override requiredLine(): undefined {
    this.required();
    this.line();
  }

  override line(): undefined {
    this.#record.is("line");
    this.#record.maxLength = MAX_TEXT;
  }

  override choice<T extends string>(choices: readonly T[]): undefined {
    this.#record.is("text");
    this.#record.choices = choices;
  }

  override integer(min: number, max: number): undefined {
    this.#record.is("integer");
    this.#record.range = [min, max];
  }

  override boolean(): undefined {
    this.#record.is("boolean");
  }

  override required(): true {
    this.#record.demands.add(this.#walk);
    return true;
  }

  /** A schema that did not know the field would have the API server drop it without a word. */
  override refuse(_code: string, message: string): void {
    this.text();
    this.#record.rules = [{ cel: "false", message, reason: "FieldValueForbidden" }];
  }

  override warnInactive(): void {
    this.#record.inactive = true;
  }

  override isEnabled(): boolean {
    this.get("enable").boolean();
    return this.#choose("enabled", 2) === 1;
  }

  override exactlyOne<T extends string>(names: readonly T[]): T {
    this.#record.rules = [exactlyOneOf(names)];
    return names[this.#choose("one", names.length)];
  }

  override warnUnknown(names: readonly string[]): void {
    this.#record.known = names;
  }

  /** A number below `count` that is the same for one question on one walk, and spread evenly over walks. */
  #choose(question: string, count: number): number {
    let hash = 0x811c9dc5;
    for (const char of `${this.#walk} ${this.path} ${question}`)
      hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193);
    return ((hash ^ (hash >>> 15)) >>> 0) % count;
  }
}
