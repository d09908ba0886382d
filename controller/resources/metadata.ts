import type { Field } from "./field.js";
import type { ObjectRef } from "./object-ref.js";
import { quote } from "./problem.js";

/** What every object says about itself. */
export interface ObjectMeta {
  ref: ObjectRef;
  /** Milliseconds since 1970; -Infinity without a creationTimestamp, which counts as oldest. */
  createdAt: number;
  /** Empty if the object has none. */
  uid: string;
  annotations: ReadonlyMap<string, Field>;
}

const NO_ANNOTATIONS: ReadonlyMap<string, Field> = new Map();
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

/** Reads `metadata` of `object`; name and namespace are those under which the source delivered it. */
export function readMetadata(object: Field, ref: ObjectRef): ObjectMeta {
  const metadata = object.get("metadata");
  metadata.isMap();
  const annotations = metadata.get("annotations").entries();
  return {
    ref,
    createdAt: readTimestamp(metadata.get("creationTimestamp")),
    uid: metadata.get("uid").text() ?? "",
    // Most objects have none, and each is kept.
    annotations: annotations.length === 0 ? NO_ANNOTATIONS : new Map(annotations),
  };
}

/** Reports an error if the object names an API version that is not `expected`; lists of the API server leave it out. */
export function checkApiVersion(object: Field, ...expected: string[]): void {
  const version = object.get("apiVersion").text();
  if (version !== undefined && !expected.includes(version)) {
    object.get("apiVersion").error("API_VERSION", `${quote(version)} is not read; use ${expected[0]}`);
  }
}

function readTimestamp(field: Field): number {
  const text = field.text();
  if (text === undefined) return Number.NEGATIVE_INFINITY;
  const time = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    field.error("FIELD_TYPE", `${quote(text)} is no time such as 2024-01-10T08:00:00Z`);
    return Number.NEGATIVE_INFINITY;
  }
  return time;
}
