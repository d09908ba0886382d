import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { customResourceDefinitions } from "../../controller/crds/definition.js";
import type { Schema } from "../../controller/crds/schema.js";
import { EVERY_FIELD, errorsOf, nearText } from "./crds-support.js";
import { isException } from "./exceptions.js";

type Step = string | number;

/** A text inside of an object with every field, and its schema. */
interface Place {
  object: (typeof EVERY_FIELD)[number];
  steps: Step[];
  schema: Schema;
}

const places: Place[] = customResourceDefinitions().flatMap(({ spec }) => {
  const object = EVERY_FIELD.find(({ kind }) => kind === spec.names.kind)!;
  const root = spec.versions[0].schema.openAPIV3Schema.properties!.spec;
  return textsOf(object.spec, root, ["spec"]).map((place) => ({ object, ...place }));
});

function textsOf(value: unknown, schema: Schema, steps: Step[]): Omit<Place, "object">[] {
  if (typeof value === "string") return [{ steps, schema }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, child]) => {
    if (Array.isArray(value)) return textsOf(child, schema.items!, [...steps, Number(name)]);
    return textsOf(child, schema.properties?.[name] ?? schema.additionalProperties!, [...steps, name]);
  });
}

/** Whether a text passes its schema, with patterns as JavaScript reads them. */
function passes(text: string, schema: Schema): boolean {
  const {
    enum: choices,
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
    pattern,
    allOf = [],
    anyOf,
    not,
  } = schema;
  return (
    (choices === undefined || choices.includes(text)) &&
    text.length >= minLength &&
    text.length <= maxLength &&
    (pattern === undefined || compiled(pattern).test(text)) &&
    allOf.every((part) => passes(text, part)) &&
    (anyOf === undefined || anyOf.some((part) => passes(text, part))) &&
    !(not !== undefined && passes(text, not))
  );
}

function compiled(pattern: string): RegExp {
  return pattern.startsWith("(?i)") ? new RegExp(pattern.slice(4), "i") : new RegExp(pattern);
}

function replaced(value: unknown, [step, ...rest]: Step[], text: string): unknown {
  if (step === undefined) return text;
  const child = replaced((value as Record<Step, unknown>)[step], rest, text);
  if (Array.isArray(value)) return value.map((item, index) => (index === step ? child : item));
  return { ...(value as object), [step]: child };
}

/** The path of a place, as problems show it. */
function pathOf(steps: Step[]): string {
  const parts = steps.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`));
  return parts.join("").slice(1);
}

describe("what the schema of a text says", () => {
  it("is what its reader says, for any text, besides what a schema can't say", () => {
    fc.assert(
      fc.property(fc.constantFrom(...places), nearText, ({ object, steps, schema }, text) => {
        const changed = { ...object, spec: replaced(object.spec, steps.slice(1), text) };
        const path = pathOf(steps);
        const errors = errorsOf(changed).filter((problem) => problem.path === path);
        const told = JSON.stringify({ path, text, errors });
        if (!passes(text, schema)) expect(errors, told).not.toEqual([]);
        else
          expect(
            errors.filter((problem) => !isException(problem)),
            told,
          ).toEqual([]);
      }),
      { numRuns: 10_000, seed: 1 },
    );
  }, 300_000);

  it("says of every text that a reader checks more than how long it is", () => {
    expect(places.length).toBeGreaterThan(100);
    const open = places.filter(({ schema }) => Object.keys(schema).every((name) => OPEN.includes(name)));
    expect(
      [...new Set(open.map(({ steps }) => steps.filter((step) => typeof step === "string").join(".")))].sort(),
    ).toEqual(FREE_TEXTS);
  });
});

const OPEN = ["description", "type", "maxLength"];
/** Texts that may be anything. */
const FREE_TEXTS = [
  "spec.ingressClassName",
  "spec.routes.matches.conditions.value",
  "spec.subroutes.matches.conditions.value",
  "spec.upstreams.subselector.version",
];
