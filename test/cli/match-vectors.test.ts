import { describe, expect, it } from "vitest";
import { strictVectors } from "../model/model-support.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { makeFolder, put, runCli } from "./cli-support.js";

cleanUpAfterEach();

describe("match --requests, given a folder with the objects of a strict vector", () => {
  for (const vector of strictVectors()) {
    // JSON is YAML, and a file may hold a List: nothing between the vector and the command changes an object.
    it(`decides every request of ${vector.name} as the vector says`, async () => {
      const folder = makeFolder();
      put(folder, "objects.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: vector.objects }));
      const requests = vector.cases.map(({ request }) => `${JSON.stringify(request)}\n`).join("");
      const { status, stdout } = await runCli(["match", "--config-dir", folder, "--requests", "-"], requests);
      expect(status).toBe(0);
      const decisions = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(decisions).toHaveLength(vector.cases.length);
      for (const [index, { request, expect: expected }] of vector.cases.entries()) {
        expect(decisions[index], `${index + 1}: ${request.url}`).toMatchObject(expected);
      }
    });
  }
});
