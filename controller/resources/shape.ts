/** A rule over the fields of one map or list, or over one value, that stands in a schema. */
export interface SchemaRule {
  /** Common Expression Language, over `self`. Must be cheap: the API server estimates its cost for the longest lists. */
  cel: string;
  message: string;
  reason?: "FieldValueInvalid" | "FieldValueForbidden" | "FieldValueRequired" | "FieldValueDuplicate";
}

/**
 * What a schema can say of a value besides what the methods of `Field` that read it say. It stands beside the reader that
 * checks the same, and becomes part of the definitions of the custom kinds. A schema may let more pass than its reader, never
 * less.
 */
export interface Shape {
  /** A text matches each of these. They may use only what RE2 and JavaScript understand alike. */
  patterns?: readonly RegExp[];
  /** A text matches none of these. */
  not?: readonly RegExp[];
  /** Longest text, in characters. */
  maxLength?: number;
  /** A number is in one of these ranges, both ends included. */
  ranges?: readonly (readonly [number, number])[];
  /** The field that no two entries of a list have alike. */
  key?: string;
  rules?: readonly SchemaRule[];
}

/** Whether a text has the shape. */
export function hasShape(text: string, shape: Shape): boolean {
  return (
    text.length <= (shape.maxLength ?? Number.POSITIVE_INFINITY) &&
    (shape.patterns ?? []).every((pattern) => pattern.test(text)) &&
    !(shape.not ?? []).some((pattern) => pattern.test(text))
  );
}
