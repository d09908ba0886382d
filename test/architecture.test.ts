import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** The layers of ARCHITECTURE.md, from the top. A part may import from layers below its own. */
const LAYERS = [
  ["controller/cli"],
  ["controller/controller.ts"],
  [
    "controller/files",
    "controller/kubernetes",
    "controller/admission",
    "controller/reconcile",
    "controller/proxies",
    "controller/health",
    "controller/crds",
  ],
  ["controller/model"],
  ["controller/resources"],
  ["controller/observability", "controller/errors.ts", "controller/core-file.ts", "controller/private-folder.ts"],
  ["core-wasm/hosts"],
  ["core-wasm/module"],
  ["core-wasm/binding"],
];
const CORE = "core-wasm/assembly";
/** The one file that two languages read: the binding writes images as the core reads them. */
const LAYOUT = "core-wasm/assembly/image/layout.ts";
const BINDING = "core-wasm/binding";
/** A build of the core of its own: with the callbacks of proxy-wasm around it. */
const ENVOY_FILTER = "core-wasm/hosts/envoy/assembly/";

/** Types that parts of different layers agree on. */
const CONTRACTS = ["controller/model/types.ts", "controller/reconcile/plan.ts", "controller/proxies/proxy.ts"];

/** Who may import a package. */
const PACKAGES: Record<string, string[]> = {
  "@kubernetes/client-node": ["controller/kubernetes"],
  commander: ["controller/cli"],
  yaml: ["controller/files", "controller/kubernetes", "controller/crds"],
  undici: ["controller/proxies", "controller/kubernetes"],
};

const TOP_LEVEL = ["balancer", "bench", "controller", "core-wasm", "deploy", "examples", "test"];
/** Made by the installation and the build; not in the repository. */
const MADE = ["dist", "node_modules"];

interface Import {
  from: string;
  /** Path of a file of the project, or the name of a package or built-in module. */
  to: string;
  typeOnly: boolean;
}

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => posix.join(folder, file.replaceAll("\\", "/")));
}

/** The code of a file without comments. */
function code(file: string): string {
  return readFileSync(join(ROOT, file), "utf8").replaceAll(/\/\*.*?\*\/|^\s*\/\/.*$/gms, "");
}

function importsOf(file: string): Import[] {
  const found = code(file).matchAll(/^(?:import|export)\s+(type\s)?(?:[^;"']*?\sfrom\s+)?"([^"]+)";/gms);
  const dynamic = code(file).matchAll(/\bimport(\s)?\(\s*"([^"]+)"\s*\)/g);
  return [...found, ...dynamic].map(([, type, target]) => ({
    from: file,
    to: target.startsWith(".") ? withExtension(posix.join(dirname(file), target)) : target,
    typeOnly: type?.trim() === "type",
  }));
}

/** The source behind an import: `.js` in TypeScript, none in AssemblyScript. */
function withExtension(path: string): string {
  if (path.endsWith(".wasm")) return path;
  return path.endsWith(".js") ? `${path.slice(0, -3)}.ts` : path.endsWith(".ts") ? path : `${path}.ts`;
}

/** The part that a file belongs to. */
function partOf(file: string): string {
  const parts = file.split("/");
  return parts.slice(0, 2).join("/");
}

function layerOf(file: string): number {
  return LAYERS.findIndex((parts) => parts.includes(partOf(file)));
}

const hosts = sources("core-wasm/hosts").filter((file) => !file.startsWith(ENVOY_FILTER));
const files = [...sources("controller"), ...hosts, ...sources("core-wasm/module"), ...sources("core-wasm/binding")];
const imports = files.flatMap(importsOf);
const inner = imports.filter(({ to }) => to.startsWith("controller/") || to.startsWith("core-wasm/"));

function told({ from, to }: Import): string {
  return `${from} -> ${to}`;
}

describe("the parts", () => {
  it("are all found, with their imports", () => {
    expect(files.length).toBeGreaterThan(100);
    expect(inner.length).toBeGreaterThan(300);
    expect(imports.filter(({ from, to }) => from === to)).toEqual([]);
  });

  it("have a layer each", () => {
    expect(files.filter((file) => layerOf(file) < 0)).toEqual([]);
  });

  it("import from layers below their own only, contracts aside", () => {
    const wrong = inner.filter(({ from, to, typeOnly }) => {
      if (partOf(from) === partOf(to)) return false;
      if (CONTRACTS.includes(to) && typeOnly) return false;
      if (to === LAYOUT) return partOf(from) !== BINDING;
      return layerOf(to) <= layerOf(from);
    });
    expect(wrong.map(told)).toEqual([]);
  });

  it("agree on contracts that know nothing but each other and the types of the binding", () => {
    const wrong = imports.filter(
      ({ from, to, typeOnly }) =>
        CONTRACTS.includes(from) && !(typeOnly && (CONTRACTS.includes(to) || partOf(to) === "core-wasm/binding")),
    );
    expect(wrong.map(told)).toEqual([]);
  });

  it("use each package in its places", () => {
    const packages = imports.filter(
      ({ to }) => !to.startsWith("controller/") && !to.startsWith("core-wasm/") && to !== "core.wasm",
    );
    const wrong = packages.filter(({ from, to }) => !to.startsWith("node:") && !PACKAGES[to]?.includes(partOf(from)));
    expect(wrong.map(told)).toEqual([]);
  });
});

describe("the core", () => {
  it("imports nothing but itself", () => {
    const wrong = sources(CORE)
      .flatMap(importsOf)
      .filter(({ to }) => partOf(to) !== CORE);
    expect(wrong.map(told)).toEqual([]);
  });

  it("is met as core.wasm: nothing imports its sources, but the binding the layout of images", () => {
    const all = [...inner, ...[...sources("bench"), ...sources("test")].flatMap(importsOf)];
    const met = all.filter(({ to }) => to.startsWith(CORE));
    expect(met.filter(({ from, to }) => to !== LAYOUT || partOf(from) !== BINDING).map(told)).toEqual([]);
    expect(met.length).toBeGreaterThan(0);
  });

  it("is all that the filter of Envoy is built from, besides itself", () => {
    const wrong = sources(ENVOY_FILTER)
      .flatMap(importsOf)
      .filter(({ to }) => !to.startsWith(ENVOY_FILTER) && partOf(to) !== CORE);
    expect(wrong.map(told)).toEqual([]);
  });

  it("is imported as a module where the runtime compiles none, and read or fetched elsewhere", () => {
    const importing = imports.filter(({ to }) => to === "core.wasm").map(({ from }) => from);
    expect(importing).toEqual(["core-wasm/module/workerd.ts"]);
  });

  it("has a layout of images that needs nothing else", () => {
    expect(importsOf(LAYOUT).map(told)).toEqual([]);
  });
});

describe("the binding", () => {
  const binding = files.filter((file) => file.startsWith("core-wasm/binding/"));

  it("imports nothing but itself and the layout of images", () => {
    const wrong = binding.flatMap(importsOf).filter(({ to }) => partOf(to) !== BINDING && to !== LAYOUT);
    expect(wrong.map(told)).toEqual([]);
  });

  it("uses no global of Node", () => {
    const globals = /\b(Buffer|process|require|__dirname|__filename|setImmediate)\b/;
    expect(binding.filter((file) => globals.test(code(file)))).toEqual([]);
  });
});

describe("the top level", () => {
  it("has the folders that ARCHITECTURE.md gives, and no other", () => {
    const folders = readdirSync(ROOT, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
      .map((entry) => entry.name);
    expect(folders.filter((folder) => !TOP_LEVEL.includes(folder) && !MADE.includes(folder))).toEqual([]);
  });
});

describe("ARCHITECTURE.md", () => {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");

  it("lists the layers that are held here", () => {
    const section = text.split("### What may import what")[1].split("\n## ")[0];
    const listed = [...section.matchAll(/^\d+\. (.*)$/gm)].map(([, line]) =>
      [...line.matchAll(/`([^`]+)`/g)].map(([, part]) => part).filter((part) => part !== "core.wasm"),
    );
    expect(listed).toEqual([...LAYERS, [CORE]]);
  });

  it("names only files and folders that exist", () => {
    const paths = [...text.matchAll(/`((?:controller|core-wasm|bench|test|examples)\/[\w./-]*)`/g)].map(
      ([, path]) => path,
    );
    const tree = [...files, ...sources(CORE), ...sources(ENVOY_FILTER), ...sources("test")];
    const vectors = readdirSync(join(ROOT, "test")).map((name) => `test/${name}`);
    const scripts = ["core-wasm/link", "core-wasm/native", "core-wasm/hosts"].flatMap((folder) =>
      readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`),
    );
    const exists = (path: string) => {
      const plain = path.replace(/\/$/, "");
      return (
        [...tree, ...vectors, ...scripts].some((file) => file === plain || file.startsWith(`${plain}/`)) ||
        plain === "core-wasm/ABI.md"
      );
    };
    expect(paths.length).toBeGreaterThan(30);
    expect(paths.filter((path) => !exists(path))).toEqual([]);
  });
});
