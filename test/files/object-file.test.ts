import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseYamlDocuments } from "../../controller/files/documents.js";
import { readObjectFile } from "../../controller/files/object-file.js";
import { refText } from "../../controller/resources/object-ref.js";
import { ingress } from "./files-support.js";

const namesIn = (text: string, file = "a.yaml") => readObjectFile(file, text).objects.map(({ ref }) => refText(ref));
const problemsIn = (text: string, file = "a.yaml") =>
  readObjectFile(file, text).problems.map(({ line, code }) => `${line} ${code}`);

describe("a file", () => {
  it.each([
    ["ends in a marker", `---\n${ingress("a")}---\n`, 1],
    ["has comments between documents", `# one\n---\n# two\n${ingress("a")}--- # three\n${ingress("b")}`, 2],
    ["has Windows line ends", `${ingress("a")}---\n${ingress("b")}`.replaceAll("\n", "\r\n"), 2],
    ["has a directive", `%YAML 1.2\n---\n${ingress("a")}---\n${ingress("b")}`, 2],
    ["has document ends", `${ingress("a")}...\n---\n${ingress("b")}...\n`, 2],
    ["is empty", "", 0],
    ["holds only a comment", "# nothing\n", 0],
  ])("that %s is read", (_title, text, count) => {
    expect(namesIn(text)).toHaveLength(count);
    expect(problemsIn(text)).toEqual([]);
  });

  it("may use anchors and merge keys", () => {
    const text = `apiVersion: v1
kind: Service
metadata: &m {name: a}
spec: {ports: [&p {port: 80, name: x}, {<<: *p, name: y}]}`;
    expect(readObjectFile("a.yaml", text).objects[0].object).toMatchObject({
      spec: { ports: [{ port: 80 }, { port: 80, name: "y" }] },
    });
  });

  it("gives objects without a namespace to default, and IngressClass to none", () => {
    const text = `${ingress("a")}---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: c}\n`;
    expect(namesIn(text)).toEqual(["Ingress/default/a", "IngressClass/c"]);
  });

  it("may hold Lists, of any kind of list", () => {
    const item = { apiVersion: "v1", kind: "Service", metadata: { name: "a" } };
    const list = { apiVersion: "v1", kind: "ServiceList", items: [item] };
    expect(namesIn(JSON.stringify({ apiVersion: "v1", kind: "List", items: [list] }), "a.json")).toEqual([
      "Service/default/a",
    ]);
  });

  it("passes over kinds of the same name in other groups", () => {
    expect(namesIn("apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n")).toEqual([]);
  });

  it.each([
    ["a: b: c\n", "1 FILE_SYNTAX"],
    [`${ingress("a")}---\nx: [1\n`, "8 FILE_SYNTAX"],
    ["a: 1\na: 2\n", "2 FILE_SYNTAX"],
    ["just text\n", "1 FILE_NO_OBJECT"],
    ["replicas: 3\n", "1 FILE_NO_OBJECT"],
    ["apiVersion: v1\nkind: Service\n", "1 FILE_OBJECT"],
    ["apiVersion: v1\nkind: Service\nmetadata: {name: ../../etc}\n", "1 FILE_OBJECT"],
    ["apiVersion: v1\nkind: Service\nmetadata: {name: 7}\n", "1 FILE_OBJECT"],
    ["apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: b/c}\n", "1 FILE_OBJECT"],
    ["apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: 7}\n", "1 FILE_OBJECT"],
  ])("%j is reported with its line", (text, problem) => {
    expect(problemsIn(text)).toEqual([problem]);
  });

  it("of broken JSON is reported with its line", () => {
    expect(problemsIn('{\n"a": 1,\n}', "a.json")).toEqual(["3 FILE_SYNTAX"]);
  });

  it("is never quoted in a problem, for it may be a Secret", () => {
    const broken = [
      "a: SECRET-MARKER: c\n",
      "k: [SECRET-MARKER\n",
      "SECRET-MARKER\n",
      "*SECRET-MARKER\n",
      "@SECRET-MARKER\n",
    ];
    for (const text of broken) {
      const { problems } = readObjectFile("a.yaml", text);
      expect(problems).toHaveLength(1);
      expect(JSON.stringify(problems)).not.toContain("MARKER");
    }
    expect(JSON.stringify(readObjectFile("a.json", '{"a": SECRET-MARKER}').problems)).not.toContain("MARKER");
  });

  it("with aliases that multiply is refused", () => {
    const levels = Array.from(
      { length: 12 },
      (_, level) => `l${level + 1}: &l${level + 1} [${`*l${level},`.repeat(9)}]`,
    );
    expect(problemsIn(`l0: &l0 [x]\n${levels.join("\n")}\n`)).toEqual(["1 FILE_LIMIT"]);
  });

  it("with many aliases of one long text is refused", () => {
    const text = `apiVersion: v1\nkind: Service\nmetadata: {name: a}\nx: &x ${"y".repeat(1_000_000)}\nspec: [${"*x,".repeat(90)}]\n`;
    expect(problemsIn(text)).toEqual(["1 FILE_LIMIT"]);
  });

  it.each(["[", "{a: ", "- "])("that nests %j without end is refused", (open) => {
    expect(problemsIn(open.repeat(50_000))).toHaveLength(1);
  });

  it("of JSON that nests without end is refused", () => {
    const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    const text = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":${deep}}`;
    expect(problemsIn(text, "a.json")).toEqual(["1 FILE_LIMIT"]);
  });

  it("gives a map no prototype", () => {
    const text = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n__proto__: {polluted: true}\n";
    expect(namesIn(text)).toEqual(["Service/default/a"]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("of any text never throws", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."{}[]:-,#&*!|>'\"%@`a \n\t---".split("")), maxLength: 200 }),
        (text) => {
          readObjectFile("a.yaml", text);
          readObjectFile("a.json", text);
        },
      ),
      { numRuns: 1500, seed: 5 },
    );
  });
});

describe("documents that were read before", () => {
  it("are taken from the last reading if their text is the same", () => {
    const first = parseYamlDocuments(`${ingress("a")}---\n${ingress("b")}`);
    const second = parseYamlDocuments(`${ingress("a")}---\n${ingress("c")}`, first.cache);
    expect(second.documents[0].value).toBe(first.documents[0].value);
    expect(second.documents[1].value).toMatchObject({ metadata: { name: "c" } });
  });

  it("are forgotten once they are gone", () => {
    const first = parseYamlDocuments(`${ingress("a")}---\n${ingress("b")}`);
    const second = parseYamlDocuments(ingress("a"), first.cache);
    expect(second.cache.size).toBe(1);
  });
});
