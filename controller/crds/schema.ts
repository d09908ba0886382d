import type { SchemaRule, Shape } from "../resources/shape.js";
import type { FieldRecord } from "./field-record.js";

/** A structural schema (Kubernetes API, JSONSchemaProps), as far as it is used here. */
export interface Schema {
  description?: string;
  type?: "object" | "array" | "string" | "integer" | "boolean";
  format?: string;
  enum?: readonly (string | number)[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  required?: readonly string[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  allOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  not?: Schema;
  "x-kubernetes-list-type"?: "map" | "atomic";
  "x-kubernetes-list-map-keys"?: readonly string[];
  "x-kubernetes-validations"?: readonly { rule: string; message: string; reason?: string }[];
}

/** What a field is for, by the names on the way to it. */
export type Describe = (record: FieldRecord) => string;

/** No control characters: what a `line` is beside not being empty. */
const LINE = /^[^\x00-\x1f\x7f]*$/;
const NOT_ACTIVE = "Checked, but does not act in this version.";

/** The schema of a value. Throws if a reader says too little of it. */
export function schemaOf(record: FieldRecord, describe: Describe): Schema {
  const description = record.inactive ? `${describe(record)} ${NOT_ACTIVE}` : describe(record);
  return { description, ...bareSchema(record, describe), ...validations(record) };
}

function bareSchema(record: FieldRecord, describe: Describe): Schema {
  const { shape = {} } = record;
  switch (record.type) {
    case "map":
      return mapSchema(record, describe);
    case "list":
      return listSchema(record, shape, describe);
    case "text":
    case "line":
      return textSchema(record, shape);
    case "integer":
      return integerSchema(record.range, shape);
    case "boolean":
      return { type: "boolean" };
  }
}

function mapSchema(record: FieldRecord, describe: Describe): Schema {
  if (record.entry !== undefined) {
    const additionalProperties = bareSchema(record.entry, describe);
    return { type: "object", maxProperties: record.size?.[1], additionalProperties };
  }
  const fields = [...record.fields].sort(([a], [b]) => (a < b ? -1 : 1));
  const required = record.required();
  return {
    type: "object",
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(fields.map(([name, field]) => [name, schemaOf(field, describe)])),
  };
}

function listSchema(record: FieldRecord, { key }: Shape, describe: Describe): Schema {
  const [least, most] = record.size!;
  const entry = record.entries();
  return {
    type: "array",
    ...(least > 0 && { minItems: least }),
    maxItems: most,
    ...(key === undefined
      ? { "x-kubernetes-list-type": "atomic" }
      : { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] }),
    items: { ...bareSchema(entry, describe), ...validations(entry) },
  };
}

function textSchema(record: FieldRecord, shape: Shape): Schema {
  if (record.choices !== undefined) return { type: "string", enum: record.choices };
  const patterns = shape.patterns ?? (record.type === "line" ? [LINE] : []);
  const not = shape.not ?? [];
  const maxLength = Math.min(record.maxLength!, shape.maxLength ?? Number.POSITIVE_INFINITY);
  return {
    type: "string",
    ...(record.type === "line" && { minLength: 1 }),
    maxLength,
    ...(patterns.length === 1 && { pattern: re2(patterns[0]) }),
    ...(patterns.length > 1 && { allOf: patterns.map((pattern) => ({ pattern: re2(pattern) })) }),
    ...(not.length === 1 && { not: { pattern: re2(not[0]) } }),
    ...(not.length > 1 && { not: { anyOf: not.map((pattern) => ({ pattern: re2(pattern) })) } }),
  };
}

function integerSchema(range: FieldRecord["range"], { ranges = [] }: Shape): Schema {
  if (ranges.length === 0) return { type: "integer", minimum: range![0], maximum: range![1] };
  if (ranges.every(([least, most]) => least === most)) return { type: "integer", enum: ranges.map(([least]) => least) };
  return { type: "integer", anyOf: ranges.map(([minimum, maximum]) => ({ minimum, maximum })) };
}

function validations(record: FieldRecord): Schema {
  const rules: readonly SchemaRule[] = [...record.rules, ...(record.shape?.rules ?? [])];
  if (rules.length === 0) return {};
  return { "x-kubernetes-validations": rules.map(({ cel, ...rest }) => ({ rule: cel, ...rest })) };
}

/** A pattern as the API server reads it: RE2, with the flags inside. */
export function re2(pattern: RegExp): string {
  const flags = pattern.flags === "" ? "" : `(?${pattern.flags})`;
  return flags + pattern.source.replaceAll("\\/", "/");
}
