import type { Kind } from "../resources/object-ref.js";
import { parseKind } from "../resources/parse-object.js";
import { FieldRecord } from "./field-record.js";
import { RecordingField } from "./recording-field.js";

/** Enough to go every way of every reader: the rarest is one of four in each of two places that do not depend on each other. */
const WALKS = 512;

/** What the readers of a kind ask of its `spec`. */
export function readKind(kind: Kind): FieldRecord {
  const object = new FieldRecord([]);
  const ref = { kind, namespace: "default", name: "name" };
  const meta = { ref, createdAt: 0, uid: "", annotations: new Map() };
  // Nothing is ever compiled: no pattern is there.
  const checker = { checkRegex: () => ({ groups: 0 }) };
  for (let walk = 0; walk < WALKS; walk += 1) {
    const field = new RecordingField(object, walk);
    field.isRequiredMap();
    parseKind(field, meta, { checker });
  }
  const spec = object.field("spec");
  checkNames(spec);
  return spec;
}

/** A reader looks at each field that it knows, and knows each field that it looks at. */
function checkNames(record: FieldRecord): void {
  const { known, fields, entry } = record;
  const seen = [...fields.keys()];
  const wrong = known && [
    ...known.filter((name) => !fields.has(name)),
    ...seen.filter((name) => !known.includes(name)),
  ];
  if (wrong !== undefined && wrong.length > 0)
    throw new Error(`${record.path} knows or reads only: ${wrong.join(", ")}`);
  for (const field of fields.values()) checkNames(field);
  if (entry !== undefined) checkNames(entry);
}
