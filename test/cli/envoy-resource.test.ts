import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { packBundle } from "../../core-wasm/hosts/envoy/packing.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { makeFolder, ROOT, runCli } from "./cli-support.js";

cleanUpAfterEach();

async function compiled(folder: string): Promise<string> {
  const out = join(folder, "cafe.njkb");
  await runCli(["compile", "--config-dir", join(ROOT, "examples/cafe"), "--out", out]);
  return out;
}

describe("envoy-resource", () => {
  it("writes the filter with the bundle, the same bytes for the same bundle, and says what it has written", async () => {
    const folder = makeFolder();
    const bundle = await compiled(folder);
    const files = [join(folder, "a.pb"), join(folder, "b.pb")];
    for (const out of files) {
      const { status, stdout, stderr } = await runCli(["envoy-resource", bundle, "--filter", "/f.wasm", "--out", out]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toMatch(/\.pb: version [0-9a-f]{16}, \d+ bytes\n$/);
    }
    const [first, second] = files.map((file) => readFileSync(file));
    expect(first.equals(second)).toBe(true);
    expect(first.includes(Buffer.from(packBundle(readFileSync(bundle))))).toBe(true);
    expect(first.includes("/f.wasm")).toBe(true);
    expect(statSync(files[0]).mode & 0o777).toBe(0o644);
  });

  it("keeps a secret to the owner of the file, and refuses one that could be guessed", async () => {
    const folder = makeFolder();
    const bundle = await compiled(folder);
    const [secret, out] = [join(folder, "secret"), join(folder, "filter.pb")];
    const args = ["envoy-resource", bundle, "--filter", "/f.wasm", "--out", out, "--decide-secret-file", secret];
    writeFileSync(secret, "short\n");
    expect(await runCli(args)).toMatchObject({ status: 2, stderr: expect.stringContaining("a secret is 16 to 256") });
    writeFileSync(secret, "0123456789abcdef\n");
    const { status, stdout } = await runCli(args);
    expect(status).toBe(0);
    expect(stdout).not.toContain("0123456789abcdef");
    expect(statSync(out).mode & 0o777).toBe(0o600);
    expect(readFileSync(out).includes("decide=0123456789abcdef")).toBe(true);
  });

  it("refuses a bundle that is not sound, and leaves the file as it is", async () => {
    const folder = makeFolder();
    const bundle = await compiled(folder);
    const damaged = readFileSync(bundle);
    damaged[damaged.length - 20] ^= 1;
    writeFileSync(bundle, damaged);
    const out = join(folder, "filter.pb");
    writeFileSync(out, "as it was");
    const { status, stderr } = await runCli(["envoy-resource", bundle, "--filter", "/f.wasm", "--out", out]);
    expect(status).toBe(2);
    expect(stderr).toContain("(CORE_IMAGE_CHECKSUM)");
    expect(readFileSync(out, "utf8")).toBe("as it was");
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
  });
});
