import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codeBlock } from "./documents.js";
import { type InstalledPackage, installPackage, ROOT } from "./installed-package.js";

const README = readFileSync(join(ROOT, "README.md"), "utf8");

let installed: InstalledPackage;
/** The folder of the project that it is installed in, and the files of the package. */
let project: string;
let packed: string[];
const run = (...args: string[]) => installed.run(...args);

beforeAll(() => {
  installed = installPackage();
  ({ project, files: packed } = installed);
}, 180_000);

afterAll(() => installed.remove());

describe("the package", () => {
  it("holds what is run and read, and neither sources nor tests nor anything else", () => {
    const kinds = new Set(
      packed.map((path) => path.replace(/^(dist\/(controller|core-wasm)|examples)\/.*\//, "$1/**/")),
    );
    for (const path of kinds) {
      expect(path).toMatch(
        /^((README|ARCHITECTURE|CHANGELOG|ERRORS|core-wasm\/(ABI|BUNDLE|hosts\/(envoy|node)\/README)|controller\/proxies\/opennjet\/api\/README)\.md|LICENSE|package\.json|core-wasm\/core\.wasm\.d\.ts|dist\/(core|envoy-filter)\.wasm|core-wasm\/hosts\/envoy\/envoy\.yaml|dist\/[^.]+(\.d\.ts|\.js)|examples\/.*\.yaml|balancer\/.*\.lua|core-wasm\/native\/.*\.[ch]|(core-wasm\/native|deploy\/debian)\/.*\.mjs)$/,
      );
    }
    expect(packed).toEqual(
      expect.arrayContaining([
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "core-wasm/ABI.md",
        "dist/core.wasm",
        "dist/core-wasm/binding/index.js",
        "dist/core-wasm/binding/index.d.ts",
        "core-wasm/hosts/node/README.md",
        "dist/core-wasm/hosts/node/index.js",
        "dist/core-wasm/module/node.js",
        "dist/core-wasm/module/fetched.js",
        "dist/core-wasm/module/workerd.js",
        "core-wasm/core.wasm.d.ts",
        "dist/controller/cli/main.js",
        "controller/proxies/opennjet/api/README.md",
        "dist/controller/proxies/opennjet/api/index.js",
        "dist/controller/proxies/opennjet/api/index.d.ts",
        "examples/cafe/ingress.yaml",
        "balancer/core/routing_table.lua",
        "core-wasm/native/build.mjs",
        "deploy/debian/nginx.mjs",
      ]),
    );
  });

  it("brings with it the dependencies of the commands, and none of those of the development", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const installed = readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."));
    expect(Object.keys(dependencies).sort()).toEqual(["@kubernetes/client-node", "commander", "undici", "yaml"]);
    expect(installed).toEqual(expect.arrayContaining(["@kubernetes", "commander", "njet-kic", "undici", "yaml"]));
    expect(installed.filter((name) => name in devDependencies)).toEqual([]);
  });

  it("runs the example of the README as it stands, which prints what the README says", () => {
    writeFileSync(join(project, "example.js"), codeBlock(README, "js"));
    expect(run("example.js")).toBe(codeBlock(README, "text"));
  });

  it("gives core.wasm under its own name, a module without imports", async () => {
    const path = run("-p", 'require.resolve("njet-kic/core.wasm")').trim();
    const module = await WebAssembly.compile(readFileSync(path));
    expect(WebAssembly.Module.imports(module)).toEqual([]);
  });

  it("keeps everything else to itself", () => {
    for (const name of [
      "njet-kic",
      "njet-kic/dist/controller/controller.js",
      "njet-kic/dist/core-wasm/module/node.js",
    ]) {
      const program = `import(${JSON.stringify(name)}).catch((error) => console.log(error.code))`;
      expect(run("-e", program).trim()).toBe("ERR_PACKAGE_PATH_NOT_EXPORTED");
    }
  });

  it("has a command that works where it is installed", () => {
    const printed = execFileSync(
      join(project, "node_modules/.bin/njet-kic"),
      ["match", "--config-dir", "node_modules/njet-kic/examples/cafe", "--json", "http://cafe.example.com/tea"],
      { cwd: project, encoding: "utf8" },
    );
    expect(JSON.parse(printed)).toMatchObject({ upstream: "default/tea:80" });
  });
});

describe("the documents", () => {
  it.each([
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "ERRORS.md",
    "core-wasm/ABI.md",
    "bench/README.md",
    "controller/proxies/opennjet/api/README.md",
  ])("name in %s only files that exist", (page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)(#[^)]*)?\)/g)].map(([, path]) => path);
    const missing = links.filter((path) => path !== "" && !existsSync(join(ROOT, dirname(page), path)));
    expect(missing).toEqual([]);
  });

  it("show in the README the commands and options that the program has", () => {
    const cli = (...args: string[]) =>
      execFileSync(process.execPath, [join(ROOT, "dist/controller/cli/main.js"), ...args]);
    for (const command of ["run", "match"]) {
      const help = cli(command, "--help").toString();
      const section = README.split(`### ${command}\n`)[1].split("\n##")[0];
      const known = [...help.matchAll(/^ +(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option);
      const shown = [...section.matchAll(/`(--[a-z-]+)/g)].map(([, option]) => option);
      expect([...new Set(shown)].sort()).toEqual(known.filter((option) => option !== "--help").sort());
    }
  });
});
