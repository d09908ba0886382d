import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { customResourceDefinitions } from "../../controller/crds/definition.js";
import { definitionFiles } from "../../controller/crds/files.js";
import type { Schema } from "../../controller/crds/schema.js";
import { NAMESPACED_TYPES } from "../../controller/kubernetes/resource-type.js";
import { EVERY_FIELD } from "./crds-support.js";

const FOLDER = new URL("../../deploy/crds/", import.meta.url);
/** `kubectl apply` keeps an object in an annotation, of which there may be so much. */
const MAX_ANNOTATION = 262_144;

const definitions = customResourceDefinitions();

function schemaOf(definition: (typeof definitions)[number]): Schema {
  return definition.spec.versions[0].schema.openAPIV3Schema;
}

/** The paths of all fields of a schema. */
function fieldsOf(schema: Schema, path: string): string[] {
  const below = schema.items ?? schema;
  const fields = Object.entries(below.properties ?? {});
  return fields.flatMap(([name, field]) => [`${path}.${name}`, ...fieldsOf(field, `${path}.${name}`)]);
}

/** The paths of all fields of an object. */
function pathsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => pathsOf(item, path));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => [`${path}.${name}`, ...pathsOf(field, `${path}.${name}`)]);
}

describe("the files of deploy/crds", () => {
  it("are what the readers say by now; npm run crds writes them anew", () => {
    for (const [name, text] of definitionFiles()) expect(readFileSync(new URL(name, FOLDER), "utf8")).toBe(text);
  });

  it("are listed by their kustomization, and no other is there", () => {
    const { resources } = parse(readFileSync(new URL("kustomization.yaml", FOLDER), "utf8"));
    expect(resources.sort()).toEqual([...definitionFiles().keys()].sort());
    expect(readdirSync(FOLDER).sort()).toEqual([...resources, "kustomization.yaml"].sort());
  });

  it("define the kinds that the controller follows, under the names by which it does", () => {
    const followed = NAMESPACED_TYPES.filter(({ apiVersion }) => apiVersion === "k8s.njet.org/v1");
    const names = definitions.map(({ spec }) => ({ kind: spec.names.kind, plural: spec.names.plural }));
    expect(names).toEqual(followed.map(({ kind, plural }) => ({ kind, plural })));
  });

  it("are small enough for kubectl apply", () => {
    for (const definition of definitions) expect(JSON.stringify(definition).length).toBeLessThan(MAX_ANNOTATION * 0.75);
  });

  it("describe each field", () => {
    const silent = (schema: Schema, path: string): string[] => {
      const fields = Object.entries((schema.items ?? schema).properties ?? {});
      return fields.flatMap(([name, field]) => {
        const here = field.description === undefined && name !== "metadata" ? [`${path}.${name}`] : [];
        return [...here, ...silent(field, `${path}.${name}`)];
      });
    };
    expect(definitions.flatMap((definition) => silent(schemaOf(definition), ""))).toEqual([]);
  });
});

describe("the objects with every field", () => {
  it("have what the schemas have, snippets aside", () => {
    // The same readers read an action wherever it stands: once is enough.
    const ending = (path: string) => path.split(".").slice(-2).join(".");
    const there = new Set(EVERY_FIELD.flatMap(({ spec }) => pathsOf(spec, "spec")).map(ending));
    const known = definitions.flatMap((definition) => fieldsOf(schemaOf(definition).properties!.spec, "spec"));
    const missing = known.map(ending).filter((name) => !there.has(name) && !name.endsWith("-snippets"));
    expect([...new Set(missing)]).toEqual([]);
    expect(known.length).toBeGreaterThan(300);
  });
});
