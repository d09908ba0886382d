import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KINDS } from "../../controller/resources/object-ref.js";
import { quote } from "../../controller/resources/problem.js";
import { strictVectors } from "../model/model-support.js";
import { ingress, parseText, parseValue, virtualServer } from "./parse-support.js";

/** Every object of the vectors: material to break in random places. */
const GOOD_OBJECTS = strictVectors().flatMap(({ objects }) => objects);

/** A good object with one value somewhere inside replaced by any JSON value. */
const brokenObject = fc
  .tuple(fc.constantFrom(...GOOD_OBJECTS), fc.array(fc.nat(), { minLength: 1, maxLength: 9 }), fc.jsonValue())
  .map(([object, steps, value]) => ({ kind: object.kind, object: replaceAt(object, steps, value) }));

function replaceAt(value: unknown, steps: number[], replacement: unknown): unknown {
  const [step, ...rest] = steps;
  if (step === undefined || typeof value !== "object" || value === null) return replacement;
  const names = Object.keys(value);
  if (names.length === 0) return replacement;
  const name = names[step % names.length];
  const child = replaceAt((value as Record<string, unknown>)[name], rest, replacement);
  if (Array.isArray(value)) return value.map((item, index) => (String(index) === name ? child : item));
  return { ...value, [name]: child };
}

describe("parsing", () => {
  it("never throws on any JSON value, whatever kind it is meant to be", () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), fc.jsonValue(), (kind, value) => {
        parseValue(kind, value);
      }),
      { numRuns: 2000, seed: 1 },
    );
  });

  it("never throws on an object with a wrong value in some place, and serves none that has an error", () => {
    fc.assert(
      fc.property(brokenObject, ({ kind, object }) => {
        const known = KINDS.find((candidate) => candidate === kind)!;
        const parsed = parseValue(known, object);
        const hasError = parsed.problems.some(({ severity }) => severity === "error");
        if (hasError && "fragment" in parsed) expect(parsed.fragment).toBeUndefined();
        for (const { path, message } of parsed.problems) expect(`${path}${message}`).toMatch(/^[\x20-\x7e]*$/);
      }),
      { numRuns: 3000, seed: 2 },
    );
  });

  it("treats names of object prototypes as plain unknown fields", () => {
    const text = virtualServer("[]").replace(
      "  host: ",
      "  __proto__: {host: evil.example.com}\n  toString: x\n  host: ",
    );
    const parsed = parseText(text);
    expect(parsed.problems.map(({ code, path }) => `${code} ${path}`)).toEqual([
      "FIELD_UNKNOWN spec.__proto__",
      "FIELD_UNKNOWN spec.toString",
    ]);
    expect(({} as Record<string, unknown>).host).toBeUndefined();
  });

  it("reads no inherited field", () => {
    const spec = Object.create({ rules: [{ host: "inherited.example.com" }] });
    expect(parseValue("Ingress", { spec }).problems.map(({ code }) => code)).toEqual(["FIELD_REQUIRED"]);
  });

  it("copes with deep nesting", () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 100_000; depth += 1) deep = { routes: [deep] };
    for (const kind of KINDS) expect(() => parseValue(kind, { metadata: deep, spec: deep })).not.toThrow();
  });

  it("lists at most 101 problems of an object", () => {
    const spec = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`field${index}`, 1]));
    const { problems } = parseValue("VirtualServer", { spec });
    expect(problems).toHaveLength(101);
    expect(problems[100]).toMatchObject({ code: "LIMIT_EXCEEDED", severity: "error" });
  });

  it("shows values of objects in one printable line", () => {
    const parsed = parseText(ingress('path: "x\\n\\u001b[31m\\u202e", pathType: ImplementationSpecific'));
    expect(parsed.problems[0].message).toMatch(/^[\x20-\x7e]+$/);
  });

  it("shortens long values", () => {
    expect(quote("x".repeat(10_000)).length).toBeLessThan(100);
  });
});
