import { describe, expect, it } from "vitest";
import { modelOf, strictVectors } from "./model-support.js";

describe("the strict vectors", () => {
  const vectors = strictVectors();

  it("are all there", () => {
    expect(vectors.length).toBeGreaterThanOrEqual(45);
  });

  for (const vector of vectors) {
    it(`reject in ${vector.name} exactly the objects that the vector lists`, () => {
      const states = modelOf(vector.objects).allObjects();
      const rejected = states
        .filter(({ state, reason }) => state === "Invalid" || reason === "Rejected")
        .map(({ ref }) => `${ref.kind}/${ref.namespace}/${ref.name}`);
      const expected = (vector.rejected ?? []).map((ref) => `${ref.kind}/${ref.namespace}/${ref.name}`);
      expect(rejected.sort()).toEqual(expected.sort());
    });

    it(`give in ${vector.name} the same model from the objects in reverse`, () => {
      const forwards = modelOf(vector.objects);
      const backwards = modelOf([...vector.objects].reverse());
      expect(backwards.snapshot()).toEqual(forwards.snapshot());
      expect(backwards.allObjects()).toEqual(forwards.allObjects());
    });
  }
});
