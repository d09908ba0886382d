import type { SchemaRule } from "../resources/shape.js";

/** Words of the language that a field's name must not be (cel-spec, "Syntax"). */
const RESERVED = [
  "true",
  "false",
  "null",
  "in",
  "as",
  "break",
  "const",
  "continue",
  "else",
  "for",
  "function",
  "if",
  "import",
  "let",
  "loop",
  "package",
  "namespace",
  "return",
  "var",
  "void",
  "while",
];

/** The name of a field in a rule (Kubernetes API, ValidationRule.rule: escaping). */
export function celName(name: string): string {
  if (RESERVED.includes(name)) return `__${name}__`;
  return name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
}

/** A map has exactly one of these fields. */
export function exactlyOneOf(names: readonly string[]): SchemaRule {
  const given = names.map((name) => `(has(self.${celName(name)}) ? 1 : 0)`).join(" + ");
  return { cel: `${given} == 1`, message: `needs exactly one of ${names.join(", ")}` };
}
