import { describe, expect, it } from "vitest";
import { FieldRecord } from "../../controller/crds/field-record.js";
import { RecordingField } from "../../controller/crds/recording-field.js";
import { re2, type Schema, schemaOf } from "../../controller/crds/schema.js";
import type { Field } from "../../controller/resources/field.js";

/** The schema that follows from a reader of a map. */
function schemaFrom(read: (field: Field) => void): Schema {
  const record = new FieldRecord(["spec"]);
  for (let walk = 0; walk < 64; walk += 1) {
    const field = new RecordingField(record, walk);
    field.isRequiredMap();
    read(field);
  }
  return schemaOf(record, ({ path }) => path);
}

describe("what a reader asks becomes a schema", () => {
  it("with a field that is needed on every way, and not one that is needed on some", () => {
    const { required } = schemaFrom((field) => {
      field.get("always").requiredLine();
      if (field.get("given").present) field.get("given").requiredLine();
      field.get("part").isMap();
      if (field.get("part").isEnabled()) field.get("name").required();
      field.get("name").line();
      const kind = field.exactlyOne(["a", "b"]);
      field.get(kind as string).requiredLine();
    });
    expect(required).toEqual(["always"]);
  });

  it("that goes every way of fields of which there is one", () => {
    const schema = schemaFrom((field) => {
      if (field.exactlyOne(["return", "two-words"]) === "return") field.get("return").boolean();
      else field.get("two-words").integer(1, 9);
    });
    expect(schema.properties).toMatchObject({
      return: { type: "boolean" },
      "two-words": { type: "integer", minimum: 1, maximum: 9 },
    });
    expect(schema["x-kubernetes-validations"]).toEqual([
      {
        rule: "(has(self.__return__) ? 1 : 0) + (has(self.two__dash__words) ? 1 : 0) == 1",
        message: "needs exactly one of return, two-words",
      },
    ]);
  });

  it("with the bounds of lists, and with the key of their entries", () => {
    const { properties } = schemaFrom((field) => {
      for (const item of field.get("plain").requiredItems(2, 5)) item.line();
      for (const item of field.get("keyed").shaped({ key: "name" }).items(7)) {
        item.isRequiredMap();
        item.get("name").requiredLine();
      }
    });
    expect(properties?.plain).toMatchObject({ minItems: 2, maxItems: 5, "x-kubernetes-list-type": "atomic" });
    expect(properties?.keyed).toMatchObject({
      maxItems: 7,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: { required: ["name"] },
    });
  });

  it("of numbers in several ranges, and of a few numbers", () => {
    const { properties } = schemaFrom((field) => {
      const ranges = {
        ranges: [
          [1, 3],
          [5, 7],
        ],
      } as const;
      const few = {
        ranges: [
          [301, 301],
          [302, 302],
        ],
      } as const;
      field.get("ranges").shaped(ranges).integer(0, 9);
      field.get("few").shaped(few).integer(0, 999);
    });
    expect(properties?.ranges.anyOf).toEqual([
      { minimum: 1, maximum: 3 },
      { minimum: 5, maximum: 7 },
    ]);
    expect(properties?.few.enum).toEqual([301, 302]);
  });

  it("that refuses what its reader refuses, instead of not knowing it", () => {
    const { properties } = schemaFrom((field) => field.get("raw").refuse("SNIPPET_REFUSED", "no"));
    const rules = [{ rule: "false", message: "no", reason: "FieldValueForbidden" }];
    expect(properties?.raw["x-kubernetes-validations"]).toEqual(rules);
  });

  it("that says of a field that does not act that it does not", () => {
    const { properties } = schemaFrom((field) => {
      field.get("later").boolean();
      field.get("later").warnInactive();
    });
    expect(properties?.later.description).toMatch(/^spec\.later Checked, but does not act/);
  });
});

describe("a reader of which no schema can be made is an error", () => {
  it.each<[string, (field: Field) => void]>([
    ["says what it is", (field) => field.get("untold").required()],
    ["is read as a boolean and as a list", (field) => [field.get("x").boolean(), field.get("x").items()]],
  ])("where nobody, or two, tell: %s", (message, read) => {
    expect(() => schemaFrom(read)).toThrow(message);
  });
});

it("patterns keep their flags, and need no escaped slash", () => {
  expect([re2(/^\/a$/i), re2(/[/]\d/)]).toEqual(["(?i)^/a$", "[/]\\d"]);
});
