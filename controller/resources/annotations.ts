import { Field } from "./field.js";
import { ProblemList, quote } from "./problem.js";

/** Annotations of the NGINX family: one that has no effect must not be silent, for people come here with many. */
const FAMILY_PREFIXES = ["nginx.ingress.kubernetes.io/", "nginx.org/", "nginx.com/", "njet.org/"];
const USE_REGEX = ["njet.org/use-regex", "nginx.ingress.kubernetes.io/use-regex"];
/** Namespace of the Secrets of an Ingress, which itself can name none; the second is Contour's, with the same meaning. */
export const TLS_NAMESPACE_ANNOTATIONS = ["njet.org/tls-cert-namespace", "projectcontour.io/tls-cert-namespace"];
export const CLASS_ANNOTATION = "kubernetes.io/ingress.class";

/** Names that say whether the paths of an Ingress are patterns. */
export const PATH_ANNOTATIONS: readonly string[] = USE_REGEX;

/** What strconv.ParseBool of Go takes, since the controllers of the family read annotations with it. */
const TRUE = ["1", "t", "T", "true", "TRUE", "True"];
const FALSE = ["0", "f", "F", "false", "FALSE", "False"];

/** Whether an annotation may say something about routing: it acts, or people who come from the family expect it to. */
export function actsOnRouting(name: string): boolean {
  return name === CLASS_ANNOTATION || FAMILY_PREFIXES.some((prefix) => name.startsWith(prefix));
}

export type Annotations = ReadonlyMap<string, Field>;

/** Whether paths of type ImplementationSpecific are patterns. The name njet.org/use-regex goes first. */
export function readUseRegex(annotations: Annotations): boolean {
  const field = USE_REGEX.map((name) => annotations.get(name)).find((candidate) => candidate?.present);
  const text = field?.text();
  if (field === undefined || text === undefined || FALSE.includes(text)) return false;
  if (!TRUE.includes(text)) field.error("ANNOTATION_INVALID", `${quote(text)} is neither true nor false`);
  return true;
}

/** Reads a field's text with `parse`, which reports on the field and answers undefined where the text is no good. */
export type AnnotationParser<T> = (field: Field) => T | undefined;

/**
 * The value of an annotation that may have several names, of which the first that is there counts. A value that cannot be
 * read is a warning, and the answer undefined: unlike `use-regex`, which decides where a request goes, such an annotation
 * only says how, and one wrong number must not take the whole object away.
 */
export function readAnnotation<T>(
  annotations: Annotations,
  names: readonly string[],
  parse: AnnotationParser<T>,
): T | undefined {
  const [field, ...others] = names.map((name) => annotations.get(name)).filter((found) => found?.present);
  if (field === undefined) return undefined;
  for (const other of others) {
    if (other?.value !== field.value) other?.warning("ANNOTATION_NO_EFFECT", `has no effect beside ${field.path}`);
  }
  const trial = new ProblemList();
  const value = parse(new Field(field.value, field.path, trial));
  if (!trial.hasError) return value;
  field.warning("ANNOTATION_INVALID", `${trial.list()[0].message}; the default is used`);
  return undefined;
}

/** A parser of true and false. */
export function parseFlag(field: Field): boolean | undefined {
  const text = field.line();
  if (text === undefined || FALSE.includes(text)) return text === undefined ? undefined : false;
  if (!TRUE.includes(text)) field.error("ANNOTATION_INVALID", `${quote(text)} is neither true nor false`);
  return true;
}

/** A parser of numbers: the text of one is read as the field of a VirtualServer is that `parse` reads. */
export function parseNumber(parse: AnnotationParser<number>): AnnotationParser<number> {
  return (field) => {
    const text = field.line();
    if (text === undefined) return undefined;
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return parse(new Field(number, field.path, field.problems));
  };
}

/** Warns about every annotation of the family that is not among `acting`. */
export function warnAnnotations(annotations: Annotations, acting: readonly string[]): void {
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
