import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { decisionJson } from "../../controller/cli/decision-json.js";
import { parseRequestSpec } from "../../controller/cli/request-line.js";
import { strictVectors, tableOfObjects } from "../model/model-support.js";

const OWN = fileURLToPath(new URL("../vectors/", import.meta.url));
const SHARED = fileURLToPath(new URL("../../../shared/vectors/", import.meta.url));

describe("the strict vectors", () => {
  for (const vector of strictVectors()) {
    describe(vector.name, () => {
      const table = tableOfObjects(vector.objects);
      for (const [index, { request, expect: expected }] of vector.cases.entries()) {
        const title = `${request.method ?? "GET"} ${request.url} gives ${expected.upstream ?? expected.status}`;

        it(`${index + 1}: ${title}`, () => {
          expect(decisionJson(table.decide(parseRequestSpec(request), 0))).toMatchObject(expected);
        });

        it(`${index + 1}: ${title} when it is explained, too`, () => {
          const input = parseRequestSpec(request);
          const { decision, steps } = table.explain(input, 0);
          expect(decisionJson(decision)).toMatchObject(expected);
          expect(steps.length).toBeGreaterThan(0);
        });
      }
    });
  }
});

describe("the folder of vectors", () => {
  it.runIf(existsSync(SHARED))("has every shared vector, unchanged", () => {
    const differing = readdirSync(SHARED).filter(
      (file) =>
        !existsSync(`${OWN}${file}`) ||
        readFileSync(`${OWN}${file}`, "utf8") !== readFileSync(`${SHARED}${file}`, "utf8"),
    );
    expect(differing).toEqual([]);
  });
});
