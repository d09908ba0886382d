import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadBundle } from "../../core-wasm/binding/index.js";
import { sharedCore } from "../support/core.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { makeFolder, put, ROOT, runCli } from "./cli-support.js";
import { ingress, service } from "./objects.js";

cleanUpAfterEach();

describe("compile", () => {
  it("writes one file that decides as the folder does, and says what is in it", async () => {
    const out = join(makeFolder(), "cafe.njkb");
    const { status, stdout, stderr } = await runCli([
      "compile",
      "--config-dir",
      join(ROOT, "examples/cafe"),
      "--out",
      out,
    ]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/cafe\.njkb: \d+ hosts, \d+ upstreams, \d+ bytes\n$/);
    const { table } = loadBundle(sharedCore, readFileSync(out));
    const decision = table.decide(
      {
        ...{
          method: "GET",
          scheme: "http",
          protocol: "HTTP/1.1",
          host: "cafe.example.com",
          target: "/tea/green?cup=2",
        },
        ...{ clientAddress: "192.0.2.1", clientPort: 1, header: () => undefined },
      },
      0,
    );
    expect(decision).toMatchObject({ action: "proxy", upstream: "default/tea:80", target: "/tea/green?cup=2" });
    table.free();
  });

  it("writes the same bytes again, in a file that everybody may read, and leaves nothing beside it", async () => {
    const folder = makeFolder();
    const out = join(folder, "cafe.njkb");
    const args = ["compile", "--config-dir", join(ROOT, "examples/cafe"), "--out", out];
    await runCli(args);
    const first = readFileSync(out);
    expect((await runCli(args)).status).toBe(0);
    expect(readFileSync(out).equals(first)).toBe(true);
    expect(statSync(out).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(readdirSync(folder)).toEqual(["cafe.njkb"]);
  });

  it("holds no certificate and no key", async () => {
    const out = join(makeFolder(), "cafe.njkb");
    await runCli(["compile", "--config-dir", join(ROOT, "examples/cafe"), "--out", out]);
    expect(readFileSync(out, "latin1")).not.toMatch(/BEGIN (CERTIFICATE|[A-Z ]*PRIVATE KEY)/);
  });

  it("leaves out what is Invalid and names it; with --strict it writes nothing", async () => {
    const folder = makeFolder();
    put(folder, "app.yaml", `${service("app", "10.0.0.1", 80)}---\n${ingress("app", "app.example.com", "app")}`);
    put(folder, "wrong.yaml", ingress("wrong", "not a host", "app"));
    const out = join(makeFolder(), "app.njkb");
    const args = ["compile", "--config-dir", folder, "--out", out];
    const strict = await runCli([...args, "--strict"]);
    expect(strict.status).toBe(1);
    expect(strict.stderr).toContain("Ingress/default/wrong is Invalid: ");
    expect(() => statSync(out)).toThrow("ENOENT");
    const kept = await runCli(args);
    expect(kept).toMatchObject({ status: 0, stderr: expect.stringContaining("Ingress/default/wrong is Invalid: ") });
    expect(kept.stdout).toContain("1 hosts, 1 upstreams");
  });

  it("ends with status 2 where the folder is missing, or where nothing can be written", async () => {
    const missing = await runCli(["compile", "--config-dir", "/nowhere", "--out", join(makeFolder(), "x")]);
    expect(missing.status).toBe(2);
    const cafe = join(ROOT, "examples/cafe");
    const unwritable = await runCli(["compile", "--config-dir", cafe, "--out", join(makeFolder(), "none", "x")]);
    expect(unwritable).toMatchObject({ status: 2, stderr: expect.stringContaining("ENOENT") });
  });
});
