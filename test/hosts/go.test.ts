import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadModel } from "../../controller/cli/load-model.js";
import { bundleOf } from "../../controller/model/bundle.js";
import { GO_MODULE, readyGo, runGo } from "../conformance/go.js";
import { codeBlock } from "../package/documents.js";
import { sharedCore } from "../support/core.js";

const found = await readyGo();
if ("skipped" in found) console.error(`tests of the Go module are skipped: ${found.skipped}`);
const go = "go" in found ? found.go : "";

function file(name: string): Buffer {
  return readFileSync(join(GO_MODULE, name));
}

/** Files of Go below the module. */
function goFiles(): string[] {
  return readdirSync(GO_MODULE, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".go"));
}

describe("the Go module", () => {
  it("has the core that the build makes, so that it is complete as it is fetched", () => {
    expect(file("core.wasm").equals(readFileSync(new URL("../../dist/core.wasm", import.meta.url)))).toBe(true);
  });

  for (const name of ["site", "later"]) {
    it(`has the bundle ${name}.njkb that its objects give`, async () => {
      const problems: string[] = [];
      const configDir = join(GO_MODULE, "testdata", name);
      const model = await loadModel(sharedCore, { configDir }, (text) => problems.push(text));
      if (model === undefined) return expect.fail(problems.join());
      expect(problems).toEqual([]);
      expect(model.allObjects().filter(({ state }) => state !== "Valid")).toEqual([]);
      expect(file(`testdata/${name}.njkb`).equals(bundleOf(model.snapshot(), sharedCore).bytes)).toBe(true);
    });
  }

  it("shows in its README what its example does", () => {
    const example = file("example_test.go").toString().replaceAll(/^\t/gm, "");
    const shown = codeBlock(file("README.md").toString(), "go");
    expect(shown.length).toBeGreaterThan(300);
    expect(example).toContain(shown.trim());
    expect(example).toContain("// proxy default/beta:80 10.0.1.1:8080 /cart?item=1");
  });

  it("has files of less than 400 lines", () => {
    const long = goFiles().filter((name) => file(name).toString().split("\n").length > 400);
    expect(long.filter((name) => !name.endsWith("_test.go"))).toEqual([]);
  });
});

describe.skipIf("skipped" in found)("the Go module, by Go's own tools", () => {
  it("is formatted", () => {
    const gofmt = go.replace(/go$/, "gofmt");
    const { status, stdout, stderr } = spawnSync(gofmt, ["-l", "."], { cwd: GO_MODULE, encoding: "utf8" });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  it("has nothing that vet finds", { timeout: 600_000 }, async () => {
    await runGo(go, ["vet", "./..."]);
  });

  it("passes its tests, with the race detector where there is a C compiler", { timeout: 900_000 }, async () => {
    const compiler = spawnSync(process.env.CC ?? "cc", ["--version"]).status === 0;
    if (!compiler) console.error("the race detector is left out: there is no C compiler");
    const output = await runGo(go, ["test", ...(compiler ? ["-race"] : []), "./..."]);
    expect(output).toMatch(/^ok\s+njet\.org\/kic\/corehost\s/m);
    expect(output).toMatch(/^ok\s+njet\.org\/kic\/corehost\/httpproxy\s/m);
  });
});
