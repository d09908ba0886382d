import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { nativeParts, startWorker } from "./worker.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const parts = await nativeParts();

let cache: string;

beforeAll(() => {
  cache = mkdtempSync(join(tmpdir(), "njet-kic-cache-"));
});

afterAll(() => rmSync(cache, { recursive: true, force: true }));

/** Runs a script of the project with an environment of its own. */
function run(script: string, args: string[], env: Record<string, string>) {
  const options = { encoding: "utf8", env: { ...process.env, ...env } } as const;
  return spawnSync(process.execPath, [join(ROOT, script), ...args], options);
}

describe("the scripts that find or make parts", () => {
  it("say what is missing, and end with status 3, on a system without apt and dpkg", () => {
    const { status, stdout, stderr } = run("deploy/debian/nginx.mjs", ["--unpacked"], {
      PATH: cache,
      XDG_CACHE_HOME: cache,
    });
    expect({ status, stdout }).toEqual({ status: 3, stdout: "" });
    expect(stderr).toContain("apt-get and dpkg not found");
  });

  it.skipIf(parts.reason !== undefined)("name the C compiler that is missing, and end with status 3", () => {
    const { status, stderr } = run("core-wasm/native/build.mjs", ["--cached", "--out", cache], {
      CC: "no-such-compiler",
    });
    expect(status).toBe(3);
    expect(stderr).toContain("no C compiler (no-such-compiler) is installed");
  });

  it("name all that is missing for the native core at once, and end with status 3", () => {
    const nothing = { PATH: cache, XDG_CACHE_HOME: cache, CC: "no-such-compiler" };
    const { status, stderr } = run("core-wasm/native/build.mjs", ["--cached", "--out", cache], nothing);
    expect(stderr).toMatch(/wasm2c of wabt [\d.]+ is not installed.*apt-get and dpkg not found.*no C compiler/);
    expect(status).toBe(3);
  });

  it("say on one line, and with status 1, where packages can't be had this time, and where there is no room for them", () => {
    const bin = join(cache, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(
      join(bin, "apt-get"),
      '#!/bin/sh\ncase "$*" in *download*) printf "W: a warning\\nE: no way to the archive\\n" >&2; exit 100;; esac\n',
      { mode: 0o755 },
    );
    writeFileSync(join(bin, "dpkg"), "#!/bin/sh\n", { mode: 0o755 });
    const PATH = `${bin}:/bin`;
    const away = run("deploy/debian/nginx.mjs", ["--unpacked"], { PATH, XDG_CACHE_HOME: join(cache, "empty") });
    expect(away.stderr.trim().split("\n").at(-1)).toMatch(
      /can be unpacked: apt-get download failed: no way to the archive$/,
    );
    expect(away.status).toBe(1);
    writeFileSync(join(cache, "file"), "");
    const full = run("deploy/debian/nginx.mjs", ["--unpacked"], { PATH, XDG_CACHE_HOME: join(cache, "file") });
    expect(full.stderr).toMatch(/the cache folder \S+ can't be made \(\w+\); XDG_CACHE_HOME/);
    expect(full.status).toBe(1);
  });

  it.skipIf(parts.reason !== undefined)("need no compiler where a library of the same module has been left", () => {
    const folder = join(cache, "left");
    const left = run("core-wasm/native/build.mjs", ["--out", folder], {});
    const { library } = JSON.parse(left.stdout) as { library: string };
    const args = ["--cached", "--out", folder];
    const again = run("core-wasm/native/build.mjs", args, { CC: "no-such-compiler" });
    expect(JSON.parse(again.stdout)).toEqual({ library });
    // Of another module it is of no use.
    const other = join(cache, "other.wasm");
    writeFileSync(other, Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
    const { status } = run("core-wasm/native/build.mjs", [...args, "--wasm", other], { CC: "no-such-compiler" });
    expect(status).toBe(3);
  });
});

describe.skipIf(parts.reason !== undefined)("the native library", () => {
  it("is built once: the same content has the same file, which is not written to again", async () => {
    const first = await nativeCore();
    const { ino, mtimeMs } = statSync(first);
    expect(await nativeCore()).toBe(first);
    expect(statSync(first)).toMatchObject({ ino, mtimeMs });
  });

  it("declares a function for every function that core.wasm exports, and for no other", async () => {
    if (parts.reason !== undefined) return;
    const worker = await startWorker(parts);
    try {
      const { body } = await worker.post("/replay", Buffer.from("E\0"));
      const declared = [...body.toString().matchAll(/int32_t njk_(\w+)\(njk_instance \*((?:, uint32_t)*)\);/g)];
      const module = new WebAssembly.Module(readFileSync(join(ROOT, "dist/core.wasm")));
      const { exports } = new WebAssembly.Instance(module);
      const functions = Object.entries(exports).filter((entry): entry is [string, (...args: number[]) => number] => {
        return typeof entry[1] === "function";
      });
      expect(Object.fromEntries(declared.map(([, name, args]) => [name, args.split(",").length - 1]))).toEqual(
        Object.fromEntries(functions.map(([name, made]) => [name, made.length])),
      );
    } finally {
      await worker.close();
    }
  });
});
