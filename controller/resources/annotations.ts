import type { Field } from "./field.js";
import { quote } from "./problem.js";

/** Annotations of the NGINX family: one that has no effect must not be silent, for people come here with many. */
const FAMILY_PREFIXES = ["nginx.ingress.kubernetes.io/", "nginx.org/", "nginx.com/", "njet.org/"];
const USE_REGEX = ["njet.org/use-regex", "nginx.ingress.kubernetes.io/use-regex"];
export const CLASS_ANNOTATION = "kubernetes.io/ingress.class";

/** Names that act on an Ingress. */
export const INGRESS_ANNOTATIONS: readonly string[] = USE_REGEX;

/** What strconv.ParseBool of Go takes, since ingress-nginx reads the annotation with it. */
const TRUE = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE = ["0", "f", "F", "false", "FALSE", "False"];

/** Whether paths of type ImplementationSpecific are patterns. The name njet.org/use-regex goes first. */
export function readUseRegex(annotations: ReadonlyMap<string, Field>): boolean {
  const field = USE_REGEX.map((name) => annotations.get(name)).find((candidate) => candidate?.present);
  const text = field?.text();
  if (field === undefined || text === undefined || FALSE.includes(text)) return false;
  if (!TRUE.includes(text)) field.error("ANNOTATION_INVALID", `${quote(text)} is neither true nor false`);
  return true;
}

/** Warns about every annotation of the family that is not among `acting`. */
export function warnAnnotations(annotations: ReadonlyMap<string, Field>, acting: readonly string[]): void {
  for (const [name, field] of annotations) {
    if (acting.includes(name) || !FAMILY_PREFIXES.some((prefix) => name.startsWith(prefix))) continue;
    if (/-snippets?$/.test(name)) {
      const reason = "raw configuration from an object is how this family of controllers was taken over";
      field.warning("SNIPPET_REFUSED", `is never used: ${reason} (CVE-2021-25742, CVE-2025-1974); remove it`);
    } else {
      field.warning("ANNOTATION_NO_EFFECT", "this annotation has no effect here");
    }
  }
}
