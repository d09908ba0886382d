import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type InstalledPackage, installPackage, ROOT } from "./installed-package.js";

/** The package is made of ES modules: who requires them meets Node's rule for that, and the oldest rules know no exports. */
const ES_MODULES_ONLY = ["node16-esm", "bundler"];

let installed: InstalledPackage;

beforeAll(() => {
  installed = installPackage(false);
}, 180_000);

afterAll(() => installed.remove());

describe("package.json as it is published", () => {
  it("has no fault, and nothing that could be better, for publint", async () => {
    const { tarball } = installed;
    const bytes = tarball.buffer.slice(tarball.byteOffset, tarball.byteOffset + tarball.length) as ArrayBuffer;
    const { messages, pkg } = await publint({ strict: true, level: "suggestion", pack: { tarball: bytes } });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
    expect(pkg?.name).toBe("njet-kic");
  });

  it("leads every way of resolving ES modules to types that fit, for Are The Types Wrong", async () => {
    const result = await checkPackage(createPackageFromTarballData(new Uint8Array(installed.tarball)));
    if (!result.types) throw new Error("no types were found");
    const found = result.problems.filter(
      (problem) => !("resolutionKind" in problem) || ES_MODULES_ONLY.includes(problem.resolutionKind),
    );
    expect(found).toEqual([]);
    expect(Object.keys(result.entrypoints)).toEqual([
      "./core",
      "./core/module",
      "./core/node",
      "./core.wasm",
      "./opennjet",
      "./package.json",
    ]);
    for (const { resolutions } of Object.values(result.entrypoints)) {
      for (const kind of ES_MODULES_ONLY) expect(resolutions).toHaveProperty([kind, "resolution", "fileName"]);
    }
  });
});

describe("the types", () => {
  const program = `import { Core, type Decision, type HostRules, RouteTable } from "njet-kic/core";
import { coreModule } from "njet-kic/core/module";
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

export async function decide(input: "file" | "address" | "answer" | Uint8Array, rules: HostRules): Promise<Decision> {
  const url = new URL("https://example.com/core.wasm");
  const core =
    input === "file" ? Core.load(coreModule())
    : input === "address" ? Core.load(url)
    : input === "answer" ? Core.load(fetch(url))
    : Core.load(input);
  const table = new RouteTable(await core);
  table.setHost(rules);
  const request = { method: "GET", scheme: "http", host: "", target: "/", protocol: "HTTP/1.1" } as const;
  return table.decide({ ...request, clientAddress: "192.0.2.1", clientPort: 1, header: () => undefined }, 0);
}

export async function load(): Promise<number> {
  const core: Core = Core.loadSync(await coreModule());
  // @ts-expect-error: the number of bytes is no text
  const used: string = core.memoryUsed;
  return Number(used);
}
`;
  const worker = `import module from "njet-kic/core.wasm";
import { Core } from "njet-kic/core";

export const core: Promise<Core> = Core.load(module);
`;

  it.each([
    ["Node's", "nodenext"],
    ["Node 16's", "node16"],
    ["a bundler's", "bundler"],
  ])("let a strict program compile by %s rules, libraries checked too", (_, resolution) => {
    writeFileSync(join(installed.project, "consumer.ts"), program);
    writeFileSync(join(installed.project, "worker.ts"), worker);
    const module = resolution === "bundler" ? "esnext" : resolution;
    const options = ["--strict", "--noEmit", "--target", "es2022", "--types", ""];
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const modules = ["--module", module, "--moduleResolution", resolution];
    expect(installed.run(tsc, ...options, ...modules, "consumer.ts", "worker.ts")).toBe("");
  });

  it("of the Node host need those of Node, and nothing else", () => {
    for (const name of ["@types", "undici-types"]) {
      symlinkSync(join(ROOT, "node_modules", name), join(installed.project, "node_modules", name));
    }
    const text = `import { createServer } from "node:http";
import { type BundleRouter, createHandler, followPrimary } from "njet-kic/core/node";
import { coreModule } from "njet-kic/core/module";

const router: BundleRouter = await followPrimary(await coreModule());
createServer(createHandler(router, { onFailure: (error, peer) => console.log(error.message, peer.port) })).listen(80);
`;
    writeFileSync(join(installed.project, "host.ts"), text);
    const options = ["--strict", "--noEmit", "--target", "es2022", "--module", "node16", "--types", "node"];
    expect(installed.run(join(ROOT, "node_modules/typescript/bin/tsc"), ...options, "host.ts")).toBe("");
  });
});
