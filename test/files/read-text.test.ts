import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readText } from "../../controller/files/read-text.js";
import { makeFolder, put } from "./files-support.js";

describe("the text of a file", () => {
  it.each([
    ["of the size that was expected", 14],
    ["that has shrunk since", 50],
    ["that has grown since", 4],
    ["of a file system that tells no sizes", 0],
  ])("is read whole, %s", async (_title, size) => {
    const folder = makeFolder();
    put(folder, "a.yaml", "a: \u00fcber\n# \u2603");
    expect(statSync(join(folder, "a.yaml")).size).toBe(14);
    expect(await readText(join(folder, "a.yaml"), size)).toBe("a: \u00fcber\n# \u2603");
  });

  it("is the empty text for an empty file", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", "");
    expect(await readText(join(folder, "a.yaml"), 0)).toBe("");
  });

  it("is not waited for where a pipe has taken the place of the file", async () => {
    const folder = makeFolder();
    execFileSync("mkfifo", [join(folder, "a.yaml")]);
    await expect(readText(join(folder, "a.yaml"), 10)).rejects.toMatchObject({ code: "ESPIPE" });
  });

  it.each([
    ["missing.yaml", "ENOENT"],
    [".", "EISDIR"],
  ])("of %s is an error of the file system", async (name, code) => {
    await expect(readText(join(makeFolder(), name), 10)).rejects.toMatchObject({ code });
  });
});
