import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { codeBlock } from "./documents.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** An empty project into which the package is installed. */
let project: string;
/** The files of the package. */
let packed: string[];

/** Runs a program of Node in the project and returns what it prints. */
function run(...args: string[]): string {
  return execFileSync(process.execPath, args, { cwd: project, encoding: "utf8" });
}

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "njet-kic-package-"));
  const npm = (cwd: string, ...args: string[]) => execFileSync("npm", args, { cwd, encoding: "utf8" });
  const [{ filename, files }] = JSON.parse(npm(ROOT, "pack", "--json", "--pack-destination", project));
  packed = files.map(({ path }: { path: string }) => path);
  writeFileSync(join(project, "package.json"), '{ "name": "consumer", "private": true, "type": "module" }');
  npm(project, "install", "--prefer-offline", "--no-audit", "--no-fund", `./${filename}`);
}, 180_000);

afterAll(() => rmSync(project, { recursive: true, force: true }));

describe("the package", () => {
  it("holds what is run and read, and neither sources nor tests nor anything else", () => {
    const kinds = new Set(
      packed.map((path) => path.replace(/^(dist\/(controller|core-wasm)|examples)\/.*\//, "$1/**/")),
    );
    for (const path of kinds) {
      expect(path).toMatch(
        /^((README|ARCHITECTURE|CHANGELOG|ERRORS|core-wasm\/(ABI|BUNDLE|hosts\/envoy\/README)|controller\/proxies\/opennjet\/api\/README)\.md|LICENSE|package\.json|dist\/(core|envoy-filter)\.wasm|core-wasm\/hosts\/envoy\/envoy\.yaml|dist\/[^.]+(\.d\.ts|\.js)|examples\/.*\.yaml|balancer\/.*\.lua|(core-wasm\/native|deploy\/debian)\/.*\.mjs)$/,
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

  it("has types that a strict TypeScript program compiles against", () => {
    writeFileSync(
      join(project, "consumer.ts"),
      `import { Core, type Decision, type HostRules, RouteTable } from "njet-kic/core";
import { type OpenNjetApi, OpenNjetApiError } from "njet-kic/opennjet";
export async function added(api: OpenNjetApi): Promise<boolean> {
  try {
    await api.locations.add({ addressPort: "0.0.0.0:80", serverName: "_" }, { rule: "=", name: "/", body: "return 204;" });
    return true;
  } catch (error) {
    if (error instanceof OpenNjetApiError) return error.mayHaveApplied;
    throw error;
  }
}
export async function decide(wasm: Uint8Array, rules: HostRules): Promise<Decision> {
  const table = new RouteTable(await Core.load(wasm));
  table.setHost(rules);
  const request = { method: "GET", scheme: "http", host: "", target: "/", protocol: "HTTP/1.1" } as const;
  return table.decide({ ...request, clientAddress: "192.0.2.1", clientPort: 1, header: () => undefined }, 0);
}
`,
    );
    const options = [
      "--strict",
      "--noEmit",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--types",
      "",
      "consumer.ts",
    ];
    expect(run(join(ROOT, "node_modules/typescript/bin/tsc"), ...options)).toBe("");
  });

  it("keeps everything else to itself", () => {
    for (const name of ["njet-kic", "njet-kic/dist/controller/controller.js"]) {
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
