import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeSuite } from "../conformance/suite.js";
import { sharedCore } from "../support/core.js";
import { codeBlock } from "./documents.js";
import { type InstalledPackage, installPackage, ROOT } from "./installed-package.js";
import {
  answerOfWorker,
  bundlePage,
  bundleWorker,
  type Found,
  findChromium,
  findRuntime,
  printed,
  resultOfPage,
  TELLS,
} from "./runtimes.js";

const README = readFileSync(join(ROOT, "README.md"), "utf8");
const EXAMPLE = codeBlock(README, "js");
const PRINTS = codeBlock(README, "text");
/** The example, what it prints being gathered in `lines`. */
const GATHERED = `const lines = [];
console.log = (...words) => lines.push(words.join(" "));
${EXAMPLE}`;

const deno = findRuntime("deno");
const bun = findRuntime("bun");
const workerd = findRuntime("workerd");
const chromium = findChromium();
for (const [name, found] of Object.entries({ deno, bun, workerd, chromium })) {
  if ("skipped" in found) console.error(`tests in ${name} are skipped: ${found.skipped}`);
}

function isSkipped(found: Found): boolean {
  return "skipped" in found;
}

/** The runtime, in a test that is not skipped. */
function there(found: Found): { binary: string; env?: Record<string, string> } {
  if ("skipped" in found) throw new Error(found.skipped);
  return found;
}

let installed: InstalledPackage;
let folder: string;

beforeAll(() => {
  installed = installPackage(false);
  folder = installed.project;
}, 180_000);

afterAll(() => installed.remove());

describe("the example of the README, from the installed package, prints what the README says", () => {
  it.skipIf(isSkipped(deno))("in Deno, which may read and do nothing else", async () => {
    writeFileSync(join(folder, "example.js"), EXAMPLE);
    const args = ["run", "--no-prompt", "--no-remote", "--node-modules-dir=manual", "--allow-read=.", "example.js"];
    expect(await printed(there(deno).binary, args, folder)).toBe(PRINTS);
  });

  it.skipIf(isSkipped(bun))("in Bun", async () => {
    writeFileSync(join(folder, "example.js"), EXAMPLE);
    expect(await printed(there(bun).binary, ["run", "example.js"], folder)).toBe(PRINTS);
  });

  it.skipIf(isSkipped(workerd))("in workerd, bundled by the conditions of worker platforms", async () => {
    const program = `${GATHERED}\nexport default { fetch: () => new Response(lines.join("\\n")) };`;
    const worker = await bundleWorker(folder, program);
    copyFileSync(join(folder, "node_modules/njet-kic/dist/core.wasm"), join(worker, "core.wasm"));
    expect(`${await answerOfWorker(there(workerd).binary, worker)}\n`).toBe(PRINTS);
  });

  const PAGE = `${GATHERED}\nawait fetch("/result", { method: "POST", body: lines.join("\\n") });`;

  it.skipIf(isSkipped(chromium))("in Chromium, by an import map", async () => {
    const site = join(folder, "by-map");
    mkdirSync(site, { recursive: true });
    symlinkSync(join(folder, "node_modules/njet-kic"), join(site, "njet-kic"));
    const imports = {
      "njet-kic/core": "/njet-kic/dist/core-wasm/binding/index.js",
      "njet-kic/core/module": "/njet-kic/dist/core-wasm/module/fetched.js",
    };
    const map = `<script type="importmap">${JSON.stringify({ imports })}</script>`;
    writeFileSync(join(site, "index.html"), `<!doctype html>${TELLS}${map}<script type="module">${PAGE}</script>`);
    expect(`${await resultOfPage(there(chromium), site)}\n`).toBe(PRINTS);
  });

  it.skipIf(isSkipped(chromium))("in Chromium, bundled by Vite, which brings core.wasm along", async () => {
    const site = await bundlePage(folder, PAGE);
    expect(readdirSync(join(site, "assets")).filter((name) => name.endsWith(".wasm"))).toHaveLength(1);
    expect(`${await resultOfPage(there(chromium), site)}\n`).toBe(PRINTS);
  });
});

describe("every decision of the suite of conformance is the one of Node", () => {
  let suite: string;
  let digest: string;

  beforeAll(() => {
    suite = mkdtempSync(join(tmpdir(), "njet-kic-suite-"));
    digest = createHash("sha256").update(writeSuite(sharedCore, suite)).digest("hex");
    const bundles = Object.fromEntries(
      readdirSync(suite)
        .filter((name) => name.endsWith(".njkb"))
        .map((name) => [name, readFileSync(join(suite, name)).toString("base64")]),
    );
    const requests = readFileSync(join(suite, "requests.jsonl"), "latin1");
    writeFileSync(join(suite, "suite.json"), JSON.stringify({ requests, bundles }));
  });

  afterAll(() => rmSync(suite, { recursive: true, force: true }));

  /** A program that ends with the digest in `digest`. `module`: which of the files of core-wasm/module; `text`: the suite, as an expression. */
  const program = (module: string, text: string) => `
import { Core } from ${JSON.stringify(join(ROOT, "dist/core-wasm/binding/index.js"))};
import { coreModule } from ${JSON.stringify(join(ROOT, `dist/core-wasm/module/${module}.js`))};
import { replayLines } from ${JSON.stringify(join(ROOT, "dist/test/conformance/replay.js"))};
const digestOf = async (json) => {
  const { requests, bundles } = JSON.parse(json);
  const bytesOf = (file) => Uint8Array.from(atob(bundles[file]), (char) => char.charCodeAt(0));
  const lines = replayLines(await Core.load(coreModule()), requests, bytesOf);
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(lines)));
  return [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};
${text}`;
  const OF_A_FILE = program(
    "node",
    'import { readFileSync } from "node:fs";\nconsole.log(await digestOf(readFileSync("suite.json", "utf8")));',
  );

  it.skipIf(isSkipped(deno))("in Deno", async () => {
    writeFileSync(join(suite, "replay.js"), OF_A_FILE);
    const args = ["run", "--no-prompt", "--no-remote", "--allow-read", "replay.js"];
    expect(await printed(there(deno).binary, args, suite)).toBe(`${digest}\n`);
  });

  it.skipIf(isSkipped(bun))("in Bun", async () => {
    writeFileSync(join(suite, "replay.js"), OF_A_FILE);
    expect(await printed(there(bun).binary, ["run", "replay.js"], suite)).toBe(`${digest}\n`);
  });

  it.skipIf(isSkipped(workerd))("in workerd", async () => {
    const text =
      'import json from "./suite.txt";\nexport default { fetch: async () => new Response(await digestOf(json)) };';
    const worker = await bundleWorker(suite, program("workerd", text));
    copyFileSync(join(ROOT, "dist/core.wasm"), join(worker, "core.wasm"));
    copyFileSync(join(suite, "suite.json"), join(worker, "suite.txt"));
    expect(await answerOfWorker(there(workerd).binary, worker, ["suite.txt"])).toBe(digest);
  });

  it.skipIf(isSkipped(chromium))("in Chromium", async () => {
    const text = `const json = await (await fetch("/suite.json")).text();
await fetch("/result", { method: "POST", body: await digestOf(json) });`;
    const site = await bundlePage(suite, program("fetched", text));
    copyFileSync(join(suite, "suite.json"), join(site, "suite.json"));
    expect(await resultOfPage(there(chromium), site)).toBe(digest);
  });
});
