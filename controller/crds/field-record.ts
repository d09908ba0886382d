import type { SchemaRule, Shape } from "../resources/shape.js";

/** What a value is, as its readers say. A `line` is a text without control characters that is not empty. */
export type ValueType = "map" | "list" | "text" | "line" | "integer" | "boolean";

/** What the readers were seen to ask of one value, over every walk through them. */
export class FieldRecord {
  /** Names of the fields on the way from the object; those of entries of a list are the same as of the list. */
  readonly names: readonly string[];
  /** The fields of a map that have a name of their own. */
  readonly fields = new Map<string, FieldRecord>();
  /** The entries of a list, or the values of a map with any names. */
  entry: FieldRecord | undefined;
  shape: Shape | undefined;
  /** Rules that follow from how the value is read. */
  rules: readonly SchemaRule[] = [];
  choices: readonly string[] | undefined;
  range: readonly [number, number] | undefined;
  maxLength: number | undefined;
  /** Least and greatest number of entries. */
  size: readonly [number, number] | undefined;
  /** True if the value is checked but does not act. */
  inactive = false;
  /** The names that its reader knows; any other is a warning. */
  known: readonly string[] | undefined;
  /** Walks that came by. */
  readonly visits = new Set<number>();
  /** Walks on which absence would have been an error. */
  readonly demands = new Set<number>();
  #type: ValueType | undefined;

  constructor(names: readonly string[]) {
    this.names = names;
  }

  get path(): string {
    return this.names.join(".");
  }

  get type(): ValueType {
    if (this.#type === undefined) throw new Error(`${this.path}: no reader says what it is`);
    return this.#type;
  }

  /** Notes the type. Two readers of one value agree on it. */
  is(type: ValueType): void {
    if (this.#type !== undefined && this.#type !== type) {
      throw new Error(`${this.path} is read as a ${this.#type} and as a ${type}`);
    }
    this.#type = type;
  }

  field(name: string): FieldRecord {
    const known = this.fields.get(name);
    if (known !== undefined) return known;
    const record = new FieldRecord([...this.names, name]);
    this.fields.set(name, record);
    return record;
  }

  entries(): FieldRecord {
    this.entry ??= new FieldRecord(this.names);
    return this.entry;
  }

  /** Names of the fields without which the map is an error, whatever its other fields. */
  required(): string[] {
    const needed = [...this.fields].filter(([, field]) => field.demands.size === this.visits.size);
    return needed.map(([name]) => name).sort();
  }
}
