import type { Field } from "./field.js";
import type { ReferenceGrantFragment } from "./fragments.js";
import { checkApiVersion, type ObjectMeta } from "./metadata.js";
import { quote } from "./problem.js";

/** Limits and forms are those of the definition that the Gateway API installs. */
const MAX_ENTRIES = 16;
const GROUP = /^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const KIND = /^[a-zA-Z]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/;
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Kinds that mean nothing here may have stranger names than ours; a star is no pattern, so it was meant as one. */
const NAME = /^[^/%*]+$/;

/**
 * ReferenceGrant gateway.networking.k8s.io/v1 or v1beta1: which kinds of which namespaces may refer to which objects of its
 * own. It opens something, so whatever is wrong with it is an error, and a grant with an error grants nothing: a field
 * that is not known may be one that was meant to grant less.
 */
export function parseReferenceGrant(object: Field, meta: ObjectMeta): ReferenceGrantFragment {
  checkApiVersion(object, "gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1");
  object.warnUnknown(["apiVersion", "kind", "metadata", "spec", "status"]);
  const spec = object.get("spec");
  spec.isRequiredMap();
  refuseUnknown(spec, ["from", "to"]);
  return {
    namespace: meta.ref.namespace,
    from: entries(spec.get("from")).flatMap((item) => readFrom(item) ?? []),
    to: entries(spec.get("to")).flatMap((item) => readTo(item) ?? []),
  };
}

function entries(list: Field): Field[] {
  const items = list.requiredItems();
  if (items.length > MAX_ENTRIES) list.error("LIMIT_EXCEEDED", `more than ${MAX_ENTRIES} entries`);
  return items.slice(0, MAX_ENTRIES).filter((item) => item.isRequiredMap());
}

function readFrom(item: Field): ReferenceGrantFragment["from"][number] | undefined {
  refuseUnknown(item, ["group", "kind", "namespace"]);
  const group = readText(item.get("group"), GROUP, "an API group; the empty text stands for the core group");
  const kind = readText(item.get("kind"), KIND, "a kind, such as VirtualServer");
  const namespace = readText(item.get("namespace"), NAMESPACE, "one namespace; there are no patterns");
  if (group === undefined || kind === undefined || namespace === undefined) return undefined;
  return { group, kind, namespace };
}

function readTo(item: Field): ReferenceGrantFragment["to"][number] | undefined {
  refuseUnknown(item, ["group", "kind", "name"]);
  const group = readText(item.get("group"), GROUP, "an API group; the empty text stands for the core group");
  const kind = readText(item.get("kind"), KIND, "a kind, such as Service");
  // A name that is written and empty was hardly meant to grant every object.
  const named = item.get("name").value !== undefined;
  const name = named
    ? readText(item.get("name"), NAME, "the name of an object; left out it means all of them")
    : undefined;
  if (group === undefined || kind === undefined || (named && name === undefined)) return undefined;
  return { group, kind, ...(name !== undefined && { name }) };
}

function readText(field: Field, form: RegExp, meaning: string): string | undefined {
  const text = field.required() ? field.text() : undefined;
  if (text === undefined || (form.test(text) && text.length <= 253)) return text;
  field.error("NAME_INVALID", `${quote(text)} is not ${meaning}`);
  return undefined;
}

function refuseUnknown(map: Field, names: readonly string[]): void {
  for (const [name, field] of map.entries()) {
    if (!names.includes(name)) field.error("FIELD_UNKNOWN", "this field is not known, and might limit what is granted");
  }
}
