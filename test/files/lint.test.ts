import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type LintRow, runLint } from "../../controller/cli/lint.js";
import { patternChecker } from "../support/core.js";
import { ingress, makeFolder, put } from "./files-support.js";

async function lint(paths: string[], json = false): Promise<{ status: number; text: string }> {
  const written: string[] = [];
  const output = { write: (text: string) => written.push(text) };
  const status = await runLint(paths, { json }, patternChecker(), output);
  return { status, text: written.join("") };
}

async function rows(...paths: string[]): Promise<{ status: number; rows: LintRow[] }> {
  const { status, text } = await lint(paths, true);
  return { status, rows: JSON.parse(text) as LintRow[] };
}

describe("lint", () => {
  it("lists every object with state, reason and problems as JSON", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", `${ingress("good")}---\n${ingress("bad", "UPPER.example.com")}`);
    const result = await rows(folder);
    expect(result.status).toBe(1);
    expect(result.rows).toEqual([
      {
        kind: "Ingress",
        namespace: "default",
        name: "bad",
        state: "Invalid",
        reason: "Rejected",
        problems: [
          {
            path: "spec.rules[0].host",
            code: "HOST_INVALID",
            message:
              '"UPPER.example.com" is no host name such as shop.example.com or *.example.com; write it in lower case',
          },
        ],
      },
      { kind: "Ingress", namespace: "default", name: "good", state: "Valid", reason: "AddedOrUpdated", problems: [] },
    ]);
  });

  it("finds collisions between objects of different files", async () => {
    const folder = makeFolder();
    const server = (name: string) =>
      `apiVersion: k8s.njet.org/v1\nkind: VirtualServer\nmetadata: {name: ${name}}\nspec: {host: a.example.com}\n`;
    put(folder, "one/a.yaml", server("first"));
    put(folder, "two/b.yaml", server("second"));
    const result = await rows(join(folder, "one"), join(folder, "two", "b.yaml"));
    expect(result.status).toBe(0);
    expect(result.rows.map(({ name, state, reason }) => `${name} ${state} ${reason}`)).toEqual([
      "first Valid AddedOrUpdated",
      "second Warning Rejected",
    ]);
  });

  it("names what is left out because of its class", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a").replace("spec:", "spec:\n  ingressClassName: other"));
    const result = await rows(folder);
    expect(result.rows[0]).toMatchObject({ reason: "Ignored", problems: [{ code: "CLASS_NOT_SERVED" }] });
  });

  it("reports an object that stands in two files", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("x"));
    put(folder, "b.yaml", ingress("x"));
    const result = await rows(folder);
    expect(result.rows).toHaveLength(1);
    expect(result.rows[0]).toMatchObject({ state: "Warning", problems: [{ code: "OBJECT_DUPLICATE" }] });
  });

  it("fails on a path that does not exist and on a file that is broken, and still lists the rest", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", ingress("a"));
    put(folder, "b.yaml", "a: b: c\n");
    const result = await rows(folder, join(folder, "missing"));
    expect(result.status).toBe(1);
    expect(result.rows.map(({ kind, state, problems }) => `${kind} ${state} ${problems[0]?.code}`)).toEqual([
      "File Invalid FILE_UNREADABLE",
      "File Invalid FILE_SYNTAX",
      "Ingress Valid undefined",
    ]);
  });

  it("passes over a document that is no object with a warning", async () => {
    const folder = makeFolder();
    put(folder, "values.yaml", "replicas: 3\n");
    const result = await rows(folder);
    expect(result.status).toBe(0);
    expect(result.rows[0]).toMatchObject({ kind: "File", state: "Warning", problems: [{ code: "FILE_NO_OBJECT" }] });
  });

  it("prints a table for people, with a summary", async () => {
    const folder = makeFolder();
    put(folder, "a.yaml", `${ingress("good")}---\n${ingress("bad", "a_b")}`);
    const { status, text } = await lint([folder]);
    expect(status).toBe(1);
    expect(text).toBe(
      [
        "Invalid  Ingress  default/bad   Rejected",
        '    HOST_INVALID spec.rules[0].host: "a_b" is no host name such as shop.example.com or *.example.com',
        "Valid    Ingress  default/good  AddedOrUpdated",
        "1 valid, 0 with warnings, 1 invalid",
        "",
      ].join("\n"),
    );
  });

  it("of kinds that are not served yet says so", async () => {
    const folder = makeFolder();
    for (const kind of ["TransportServer", "GlobalConfiguration", "Policy"]) {
      put(folder, `${kind}.yaml`, `apiVersion: k8s.njet.org/v1\nkind: ${kind}\nmetadata: {name: x}\nspec: {}\n`);
    }
    const result = await rows(folder);
    expect(
      result.rows.map(({ kind, state, reason, problems }) => `${kind} ${state} ${reason} ${problems[0].code}`),
    ).toEqual([
      "GlobalConfiguration Warning Ignored KIND_NOT_SERVED",
      "Policy Warning Ignored KIND_NOT_SERVED",
      "TransportServer Warning Ignored KIND_NOT_SERVED",
    ]);
  });
});
