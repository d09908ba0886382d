import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import { regexReason } from "../../core-wasm/binding/regex-reasons.js";
import { codeBlock } from "./documents.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const ABI = readFileSync(join(ROOT, "core-wasm/ABI.md"), "utf8");
const { exports } = await loadCore();

/** The rows of the tables of exports: name and the cell of arguments. */
const rows = new Map([...ABI.matchAll(/^\| `([a-z_0-9]+)` \|([^|]*)\|/gm)].map(([, name, cell]) => [name, cell]));

describe("ABI.md", () => {
  it("has a row for every function that core.wasm exports, and for no other", () => {
    const functions = Object.entries(exports).flatMap(([name, value]) => (typeof value === "function" ? [name] : []));
    // abi_version stands in a text of its own.
    expect([...rows.keys(), "abi_version"].sort()).toEqual(functions.sort());
    expect(ABI).toContain("`abi_version() -> u32`");
  });

  it("names as many arguments as each function takes", () => {
    const counted = [...rows].map(([name, cell]) => {
      // Explanations behind a colon or in brackets name no arguments.
      const plain = cell.replaceAll(/\([^)]*\)/g, "");
      return [name, [...plain.matchAll(/`\w+`/g)].length];
    });
    const taken = [...rows.keys()].map((name) => {
      const found: unknown = Reflect.get(exports, name);
      return [name, typeof found === "function" ? found.length : -1];
    });
    expect(counted).toEqual(taken);
  });

  it("gives the version that the core answers with", () => {
    const version = exports.abi_version();
    expect(ABI).toContain(`It is ${version >> 8}.${version & 255} (\`0x${version.toString(16).padStart(4, "0")}\`)`);
  });

  it("lists every reason for which a pattern is refused", () => {
    const listed = [...ABI.matchAll(/^(\d+)\. (.*)$/gm)].slice(-29).map(([, code, text]) => `${code} ${text}`);
    const known = listed.map((_, index) => `${index + 1} ${regexReason(index + 1).replaceAll("\\", "\\\\")}`);
    expect(listed).toEqual(known);
    expect(regexReason(30)).toMatch(/^refused/);
  });

  it("has an example that runs as it stands and prints what the page says", () => {
    const folder = mkdtempSync(join(tmpdir(), "njet-kic-abi-"));
    try {
      // A project of its own: whatever package stands above the folder is not asked.
      writeFileSync(join(folder, "package.json"), "{}");
      mkdirSync(join(folder, "node_modules"));
      symlinkSync(ROOT, join(folder, "node_modules/njet-kic"));
      writeFileSync(join(folder, "example.mjs"), codeBlock(ABI, "js"));
      const printed = execFileSync(process.execPath, ["example.mjs"], { cwd: folder, encoding: "utf8" });
      expect(printed).toBe(codeBlock(ABI, "text"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
