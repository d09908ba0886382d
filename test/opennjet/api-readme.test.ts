import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import * as client from "../../controller/proxies/opennjet/api/index.js";
import { codeBlock } from "../package/documents.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { driven } from "./api-support.js";

cleanUpAfterEach();

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = "controller/proxies/opennjet/api/";
const CLASSES = new Map<string, unknown>(Object.entries(client).filter(([name]) => name.endsWith("Error")));
const PAGE = readFileSync(join(ROOT, FOLDER, "README.md"), "utf8");

describe("the page of njet-kic/opennjet", () => {
  it("has an example that runs as it stands and prints what the page says", async () => {
    const { double } = await driven({ modules: ["http_dyn_map"] });
    // Inside the package, so that its own name leads to what was built.
    const program = join(ROOT, "dist", `example-${process.pid}.mjs`);
    writeFileSync(program, codeBlock(PAGE, "js"));
    cleanup(() => rmSync(program));
    const env = { ...process.env, CONTROL_SERVER: double.origin };
    const { stdout } = await promisify(execFile)(process.execPath, [program], { cwd: ROOT, env });
    expect(stdout).toBe(codeBlock(PAGE, "text"));
  });

  it("names every class of errors, and no other", () => {
    const named = [...PAGE.matchAll(/`(\w+Error)`/g)].map(([, name]) => name);
    expect([...new Set(named)].sort()).toEqual([...CLASSES.keys()].sort());
  });

  it("says of each class what the class says of changes", () => {
    const rows = [...PAGE.matchAll(/^\| .* \| `(\w+Error)`.*\| (yes|no) \|$/gm)];
    const bases = new Set([...CLASSES.values()].map((one) => Object.getPrototypeOf(one)));
    const kinds = [...CLASSES].filter(([, one]) => !bases.has(one)).map(([name]) => name);
    expect(rows.map(([, name]) => name).sort()).toEqual(kinds.sort());
    for (const [, name, applied] of rows) {
      const Kind = CLASSES.get(name) as typeof client.RefusedError;
      const error = new Kind("why", { method: "PUT", path: "/", status: 0 });
      expect(error.mayHaveApplied, name).toBe(applied === "yes");
      const read = new Kind("why", { method: "GET", path: "/", status: 0 });
      if (name !== "PartlyAppliedError") expect(read.mayHaveApplied, name).toBe(false);
    }
  });

  it("names every part of the client and every call of it", () => {
    const api = new client.OpenNjetApi({ origin: "http://127.0.0.1:1" });
    const parts = Object.entries(api).filter(([name]) => !["transport", "control"].includes(name));
    for (const [name, part] of parts) {
      const row = PAGE.split("\n").find((line) => new RegExp(`^\\|.*\`${name}\``).test(line)) ?? "";
      const calls = Object.getOwnPropertyNames(Object.getPrototypeOf(part)).filter(
        (call) => !["constructor", "put", "memberCall"].includes(call),
      );
      const shown = [...row.split("|")[2].matchAll(/`(\w+)`/g)].map(([, call]) => call);
      expect(shown.filter((call) => call !== "WORKER_COUNT_KEY").sort(), name).toEqual(calls.sort());
    }
  });

  it("names only files that exist", () => {
    const links = [...PAGE.matchAll(/\]\(([^)#]+)\)/g)].map(([, path]) => path);
    expect(links).toEqual(["../../../../ERRORS.md"]);
    expect(readFileSync(join(ROOT, FOLDER, links[0]), "utf8")).toContain("OPENNJET_");
  });
});
