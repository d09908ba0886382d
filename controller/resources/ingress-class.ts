import type { Field } from "./field.js";
import type { IngressClassFragment } from "./fragments.js";
import { checkApiVersion, type ObjectMeta } from "./metadata.js";

const DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class";

/** IngressClass networking.k8s.io/v1. */
export function parseIngressClass(object: Field, meta: ObjectMeta): IngressClassFragment {
  checkApiVersion(object, "networking.k8s.io/v1");
  object.warnUnknown(["apiVersion", "kind", "metadata", "spec"]);
  const spec = object.get("spec");
  spec.isRequiredMap();
  spec.warnUnknown(["controller", "parameters"]);
  return {
    name: meta.ref.name,
    controller: spec.get("controller").requiredLine() ?? "",
    isDefault: meta.annotations.get(DEFAULT_CLASS)?.text() === "true",
  };
}
