import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { makeFolder, put, ROOT, runCli } from "./cli-support.js";
import { ingress, service } from "./objects.js";

cleanUpAfterEach();

interface Row {
  kind: string;
  namespace: string;
  name: string;
  state: string;
  reason: string;
  problems: { path: string; code: string; message: string }[];
}

/** A folder with a valid, a warned and an invalid object, and two that claim one path. */
function mixedFolder(): string {
  const folder = makeFolder();
  put(folder, "app.yaml", service("app", "10.0.0.1", 80));
  put(folder, "a.yaml", ingress("a-first", "app.example.com", "app"));
  put(folder, "b.yaml", ingress("b-second", "app.example.com", "app"));
  put(folder, "bad.yaml", ingress("bad", "not a host", "app"));
  return folder;
}

describe("lint --json", () => {
  it("prints one array with kind, namespace, name, state, reason and problems of every object", async () => {
    const { status, stdout, stderr } = await runCli(["lint", "--json", mixedFolder()]);
    expect(stderr).toBe("");
    expect(status).toBe(1);
    const rows = JSON.parse(stdout) as Row[];
    for (const row of rows) {
      expect(Object.keys(row)).toEqual(["kind", "namespace", "name", "state", "reason", "problems"]);
      for (const problem of row.problems) expect(Object.keys(problem)).toEqual(["path", "code", "message"]);
    }
    const told = rows.map(({ kind, namespace, name, state }) => `${kind}/${namespace}/${name} ${state}`);
    expect(told.sort()).toEqual([
      "EndpointSlice/default/app-1 Valid",
      "Ingress/default/a-first Valid",
      "Ingress/default/b-second Warning",
      "Ingress/default/bad Invalid",
      "Service/default/app Valid",
    ]);
  });

  it("names the field and the code of a problem, and who has the path that two objects claim", async () => {
    const { stdout } = await runCli(["lint", "--json", mixedFolder()]);
    const rows = JSON.parse(stdout) as Row[];
    const problemsOf = (wanted: string) => rows.find(({ name }) => name === wanted)?.problems;
    expect(problemsOf("bad")).toMatchObject([{ path: "spec.rules[0].host", code: "HOST_INVALID" }]);
    expect(problemsOf("b-second")).toMatchObject([
      { code: "PATH_TAKEN", message: expect.stringContaining("default/a-first") },
    ]);
  });
});

describe("lint", () => {
  it("ends with status 0 when nothing is invalid, warnings or not", async () => {
    const { status, stdout } = await runCli(["lint", "examples/cafe"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Warning +Ingress +default\/cafe +AddedOrUpdatedWithWarning$/m);
    expect(stdout).toMatch(/^ {4}SECRET_MISSING spec\.tls\[0\]\.secretName: /m);
    expect(stdout).toMatch(/\n10 valid, 1 with warnings, 0 invalid\n$/);
  });

  it("takes several files and folders together", async () => {
    const folder = mixedFolder();
    const paths = [join(folder, "app.yaml"), join(folder, "a.yaml"), join(ROOT, "examples/cafe")];
    const { status, stdout } = await runCli(["lint", "--json", ...paths]);
    expect(status).toBe(0);
    const names = (JSON.parse(stdout) as Row[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["a-first", "app", "cafe", "menu"]));
  });

  it("lists a file that cannot be read as Invalid, with status 1", async () => {
    const folder = makeFolder();
    put(folder, "broken.yaml", "a: [b");
    const { status, stdout } = await runCli(["lint", folder, "/no/such/file.yaml"]);
    expect(status).toBe(1);
    expect(stdout).toMatch(/^Invalid +File +\/no\/such\/file\.yaml/m);
    expect(stdout).toMatch(/^Invalid +File +\S*broken\.yaml/m);
  });

  it("serves the class of --ingress-class and says who is left out", async () => {
    const folder = makeFolder();
    put(folder, "app.yaml", `${service("app", "10.0.0.1", 80)}---\n${ingress("app", "app.example.com", "app")}`);
    const { status, stdout } = await runCli(["lint", "--ingress-class", "other", folder]);
    expect(status).toBe(0);
    expect(stdout).toContain("CLASS_NOT_SERVED");
  });

  it("ends with status 1 and a hint without a path", async () => {
    const { status, stdout, stderr } = await runCli(["lint"]);
    expect(status).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("path");
  });
});

describe("the command", () => {
  it("lists its commands with --help, and its version with --version", async () => {
    const help = await runCli(["--help"]);
    expect(help.status).toBe(0);
    for (const command of ["run", "start", "match", "lint"])
      expect(help.stdout).toMatch(new RegExp(`^ +${command}\\b`, "m"));
    expect((await runCli(["--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("refuses an unknown command with status 1", async () => {
    const { status, stderr } = await runCli(["serve"]);
    expect(status).toBe(1);
    expect(stderr).toContain("unknown command 'serve'");
  });
});
