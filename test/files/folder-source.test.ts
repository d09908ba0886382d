import { execFileSync } from "node:child_process";
import { appendFileSync, renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ingress, makeFolder, put, replace, settle, until, watchFolder } from "./files-support.js";

describe("a folder", () => {
  it("is read with its subfolders: YAML, JSON, several documents and Lists", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", `${ingress("a1")}---\n${ingress("a2")}---\n`);
    put(folder, "sub/deep/b.yml", ingress("b"));
    put(folder, "c.json", JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { name: "c" }, spec: {} }));
    put(
      folder,
      "list.yaml",
      `apiVersion: v1\nkind: List\nitems:\n${ingress("d").replace(/^/gm, "    ").replace("    ", "  - ")}`,
    );
    put(folder, "deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n");
    put(folder, "README.md", "no object");
    const watched = await watchFolder(folder);
    expect(watched.names()).toEqual(["a1", "a2", "b", "c", "d"]);
    expect(watched.problems()).toEqual([]);
  });

  it("that does not exist is a problem, and is read once it does", async () => {
    const folder = join(makeFolder(), "later");
    const watched = await watchFolder(folder, { rescanMs: 20 });
    expect(watched.problems()).toEqual([". FILE_UNREADABLE"]);
    put(folder, "a.yaml", ingress("a"));
    await until(() => watched.names().length === 1);
    expect(watched.problems()).toEqual([]);
  });

  it("with links in a circle is read once", async () => {
    const folder = makeFolder();
    put(folder, "sub/a.yaml", ingress("a"));
    symlinkSync("..", join(folder, "sub", "up"));
    symlinkSync(".", join(folder, "self"));
    const watched = await watchFolder(folder);
    expect(watched.names()).toEqual(["a"]);
    expect(watched.source.duplicates()).toEqual([]);
  });
});

/** Several changes: other work on the machine only ever adds time, so the shortest one shows what the source needs. */
const HOSTS = Array.from({ length: 5 }, (_, index) => `new-${index}.example.com`);

describe("a change", () => {
  it("of one file of 1,000 is effective within 100 ms, and that file alone is read again", async () => {
    const folder = makeFolder();
    for (let index = 0; index < 1000; index += 1) put(folder, `site-${index}.yaml`, ingress(`site-${index}`));
    const watched = await watchFolder(folder);
    expect(watched.names()).toHaveLength(1000);
    const elapsed: number[] = [];
    for (const host of HOSTS) {
      const reads = watched.source.reads;
      put(folder, "site-500.yaml", ingress("site-500", host));
      elapsed.push(await until(() => watched.hostOf("site-500") === host));
      expect(watched.source.reads - reads).toBe(1);
      expect(watched.batches.at(-1)).toHaveLength(1);
    }
    expect(Math.min(...elapsed)).toBeLessThan(100);
  });

  it("of one object of 1,000 in a single file is effective within 100 ms, and reports that object alone", async () => {
    const folder = makeFolder();
    const texts = Array.from({ length: 1000 }, (_, index) => ingress(`site-${index}`));
    put(folder, "all.yaml", texts.join("---\n"));
    const watched = await watchFolder(folder);
    const elapsed: number[] = [];
    for (const host of HOSTS) {
      texts[500] = ingress("site-500", host);
      replace(folder, "all.yaml", texts.join("---\n"));
      elapsed.push(await until(() => watched.hostOf("site-500") === host));
      expect(watched.batches.at(-1)).toHaveLength(1);
    }
    expect(Math.min(...elapsed)).toBeLessThan(100);
  });

  it("by atomic replacement is seen", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    for (const host of ["one.example.com", "two.example.com"]) {
      replace(folder, "a.yaml", ingress("a", host));
      await until(() => watched.hostOf("a") === host);
    }
  });

  it("by the swap of the link of a mounted ConfigMap is seen, and each object counts once", async () => {
    const folder = makeFolder();
    put(folder, "..v1/a.yaml", ingress("a", "one.example.com"));
    symlinkSync("..v1", join(folder, "..data"));
    symlinkSync("..data/a.yaml", join(folder, "a.yaml"));
    const watched = await watchFolder(folder);
    expect(watched.hostOf("a")).toBe("one.example.com");
    put(folder, "..v2/a.yaml", ingress("a", "two.example.com"));
    symlinkSync("..v2", join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    await until(() => watched.hostOf("a") === "two.example.com");
    expect(watched.source.duplicates()).toEqual([]);
  });

  it("by the swap of a ConfigMap of 1,000 files reports only the objects whose files are different", async () => {
    const folder = makeFolder();
    const names = Array.from({ length: 1000 }, (_, index) => `site-${index}`);
    for (const name of names) {
      put(folder, `..v1/${name}.yaml`, ingress(name));
      put(folder, `..v2/${name}.yaml`, ingress(name, name === "site-500" ? "new.example.com" : undefined));
      symlinkSync(`..data/${name}.yaml`, join(folder, `${name}.yaml`));
    }
    symlinkSync("..v1", join(folder, "..data"));
    const watched = await watchFolder(folder);
    expect(watched.names()).toHaveLength(1000);
    symlinkSync("..v2", join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    rmSync(join(folder, "..v1"), { recursive: true });
    await until(() => watched.hostOf("site-500") === "new.example.com");
    expect(watched.batches.map((batch) => batch.length)).toEqual([1000, 1]);
  });

  it("in a new subfolder is seen, and so is one in a folder that took its name again", async () => {
    const folder = makeFolder();
    const watched = await watchFolder(folder);
    put(folder, "sub/a.yaml", ingress("a"));
    await until(() => watched.names().includes("a"));
    rmSync(join(folder, "sub"), { recursive: true });
    await until(() => watched.names().length === 0);
    put(folder, "sub/b.yaml", ingress("b"));
    await until(() => watched.names().includes("b"));
    put(folder, "sub/b.yaml", ingress("b", "again.example.com"));
    await until(() => watched.hostOf("b") === "again.example.com");
  });

  it("that watching misses is found by the next look at the whole folder", async () => {
    const folder = makeFolder();
    const elsewhere = makeFolder();
    put(elsewhere, "target.yaml", ingress("a"));
    symlinkSync(join(elsewhere, "target.yaml"), join(folder, "a.yaml"));
    const watched = await watchFolder(folder, { rescanMs: 30 });
    put(elsewhere, "target.yaml", ingress("a", "new.example.com"));
    await until(() => watched.hostOf("a") === "new.example.com");
  });

  it("that writes the same content reports nothing", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    put(folder, "a.yaml", `# a comment\n${ingress("a")}`);
    await settle();
    expect(watched.source.reads).toBe(2);
    expect(watched.batches).toHaveLength(1);
  });

  it("in pieces is read once it is whole", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    const text = ingress("a", "pieces.example.com");
    put(folder, "a.yaml", text.slice(0, 60));
    appendFileSync(join(folder, "a.yaml"), text.slice(60));
    await until(() => watched.hostOf("a") === "pieces.example.com");
    expect(watched.batches).toHaveLength(2);
  });

  it("of other files costs no reading", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    for (let index = 0; index < 20; index += 1) put(folder, "app.log", `line ${index}\n`);
    await settle();
    expect(watched.source.reads).toBe(1);
    expect(watched.batches).toHaveLength(1);
  });
});

describe("a file that goes away", () => {
  it("takes its objects with it", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    put(folder, "b.yaml", ingress("b"));
    const watched = await watchFolder(folder);
    unlinkSync(join(folder, "a.yaml"));
    await until(() => watched.names().length === 1);
    expect(watched.names()).toEqual(["b"]);
  });

  it("by another name keeps its objects with no gap", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    renameSync(join(folder, "a.yaml"), join(folder, "b.yaml"));
    put(folder, "c.yaml", ingress("c"));
    await until(() => watched.names().length === 2);
    expect(watched.names()).toEqual(["a", "c"]);
  });

  it("with its whole folder keeps the last good state, since an empty mount is no empty configuration", async () => {
    const parent = makeFolder();
    put(parent, "config/a.yaml", ingress("a"));
    const watched = await watchFolder(join(parent, "config"), { rescanMs: 20 });
    renameSync(join(parent, "config"), join(parent, "away"));
    await until(() => watched.problems().includes(". FILE_UNREADABLE"));
    expect(watched.names()).toEqual(["a"]);
    renameSync(join(parent, "away"), join(parent, "config"));
    await until(() => watched.problems().length === 0);
    expect(watched.names()).toEqual(["a"]);
  });
});

describe("a broken file", () => {
  it("keeps the last good state of its objects and says where it is broken", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", `${ingress("a1")}---\n${ingress("a2")}`);
    put(folder, "b.yaml", ingress("b"));
    const watched = await watchFolder(folder);
    put(folder, "a.yaml", `${ingress("a1", "new.example.com")}---\nkind: [\n  oops: }\n`);
    await until(() => watched.problems().length > 0);
    expect(watched.problems()).toEqual(["a.yaml:8 FILE_SYNTAX"]);
    expect(watched.names()).toEqual(["a1", "a2", "b"]);
    expect(watched.hostOf("a1")).toBe("a1.example.com");
    put(folder, "b.yaml", ingress("b", "still.example.com"));
    await until(() => watched.hostOf("b") === "still.example.com");
    put(folder, "a.yaml", ingress("a1", "mended.example.com"));
    await until(() => watched.hostOf("a1") === "mended.example.com");
    expect(watched.names()).toEqual(["a1", "b"]);
    expect(watched.problems()).toEqual([]);
  });

  it("at the start gives its good documents", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", `${ingress("good")}---\na: b: c\n---\n${ingress("also")}`);
    const watched = await watchFolder(folder);
    expect(watched.names()).toEqual(["also", "good"]);
    expect(watched.problems()).toEqual(["a.yaml:7 FILE_SYNTAX"]);
  });

  it("that cannot be read keeps its last good state", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    rmSync(join(folder, "a.yaml"));
    symlinkSync("a.yaml", join(folder, "a.yaml"));
    await until(() => watched.problems().length > 0);
    expect(watched.problems()).toEqual(["a.yaml FILE_UNREADABLE"]);
    expect(watched.names()).toEqual(["a"]);
  });

  it("that is written again as broken as it was stays a problem, and its last good state in force", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    put(folder, "a.yaml", "kind: [");
    await until(() => watched.problems().length > 0);
    const { reads } = watched.source;
    replace(folder, "a.yaml", "kind: [");
    await until(() => watched.source.reads > reads);
    await settle();
    expect(watched.problems()).toEqual(["a.yaml:1 FILE_SYNTAX"]);
    expect(watched.names()).toEqual(["a"]);
  });

  it("that becomes what it was before it could not be read is no problem any more", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder);
    rmSync(join(folder, "a.yaml"));
    symlinkSync("a.yaml", join(folder, "a.yaml"));
    await until(() => watched.problems().length > 0);
    replace(folder, "a.yaml", ingress("a"));
    await until(() => watched.problems().length === 0);
    expect(watched.names()).toEqual(["a"]);
    expect(watched.batches.flat()).toHaveLength(1);
  });

  it("that is a pipe holds nothing up", async () => {
    const folder = makeFolder();
    execFileSync("mkfifo", [join(folder, "pipe.yaml")]);
    put(folder, "b.yaml", ingress("b"));
    const watched = await watchFolder(folder);
    expect(watched.names()).toEqual(["b"]);
    expect(watched.problems()).toEqual(["pipe.yaml FILE_UNREADABLE"]);
  });

  it("that is too large is not read", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    const watched = await watchFolder(folder, { limits: { maxBytes: 1000 } });
    put(folder, "a.yaml", `${ingress("a", "new.example.com")}# ${"x".repeat(1000)}`);
    await until(() => watched.problems().length > 0);
    expect(watched.problems()).toEqual(["a.yaml FILE_LIMIT"]);
    expect(watched.hostOf("a")).toBe("a.example.com");
  });
});

describe("an object in two files", () => {
  it("is the one of the first file, is reported, and moves on when that file goes", async () => {
    const folder = makeFolder();
    put(folder, "b.yaml", ingress("x", "b.example.com"));
    put(folder, "a.yaml", ingress("x", "a.example.com"));
    const watched = await watchFolder(folder);
    expect(watched.hostOf("x")).toBe("a.example.com");
    expect(watched.source.duplicates().map(({ files }) => files)).toEqual([["a.yaml", "b.yaml"]]);
    unlinkSync(join(folder, "a.yaml"));
    await until(() => watched.hostOf("x") === "b.example.com");
    expect(watched.source.duplicates()).toEqual([]);
  });
});

it("nothing is delivered after close", async () => {
  const folder = makeFolder();
  put(folder, "a.yaml", ingress("a"));
  const watched = await watchFolder(folder, { rescanMs: 10 });
  await watched.source.close();
  put(folder, "b.yaml", ingress("b"));
  await settle();
  expect(watched.batches).toHaveLength(1);
});
