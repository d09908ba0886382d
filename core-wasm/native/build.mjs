// Makes core.wasm native: wasm2c -> C -> one shared library with a guarded function for each export.
//   node core-wasm/native/build.mjs [--wasm FILE] [--cached | --out FOLDER]
// The library is named by what it was made from, and kept in the cache folder; unless --cached is given it is copied to
// dist/native, or to another folder, with a note beside it of what it was made from. --cached takes the library that such a
// note describes, if it is of this module and these sources: a machine that has it needs no compiler. Prints where it is as
// JSON: {"library": path}. Exit status: 0; 3 a tool is missing, which is named; 1 the build failed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { cacheFolder, runScript, Unavailable } from "../../deploy/debian/packages.mjs";
import { wabt } from "../../deploy/debian/wabt.mjs";
import { functionsOf, MODULE, shim } from "./shim.mjs";

/** Beside a library that is left somewhere. */
const NOTE = "njet-kic-core.json";
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");

/** What the library is made from beside the module. */
const SOURCES = [
  "build.mjs",
  "shim.mjs",
  ...readdirSync(here)
    .filter((file) => /\.[ch]$/.test(file))
    .sort(),
];

const FLAGS = [
  ...["-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-s", "-w"],
  // No handlers of signals in somebody else's process: addresses are compared instead.
  "-DWASM_RT_MEMCHECK_SIGNAL_HANDLER=0",
  // Deep enough for the deepest pattern that the core takes, and far from the end of a stack of 8 MiB.
  "-DWASM_RT_MAX_CALL_STACK_DEPTH=8192",
  "-D_DEFAULT_SOURCE",
];

function run(program, args) {
  const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${basename(program)} failed: ${error?.message ?? String(stderr).slice(-4000)}`);
}

/** The C compiler: $CC, or the first of the usual ones. Answers its name and its version line. */
function compiler() {
  const candidates = process.env.CC ? [process.env.CC] : ["cc", "gcc", "clang"];
  for (const name of candidates) {
    const { status, stdout } = spawnSync(name, ["--version"], { encoding: "utf8" });
    if (status === 0) return { name, version: stdout.split("\n")[0] };
  }
  throw new Unavailable(`no C compiler (${candidates.join(", ")}) is installed`);
}

function compile({ wasm, tools, cc, folder, library }) {
  const input = join(folder, "core.wasm");
  writeFileSync(input, wasm);
  run(join(tools.programs, "wasm2c"), [input, "-o", join(folder, "core.c"), "-n", MODULE]);
  writeFileSync(join(folder, "shim.c"), shim(functionsOf(readFileSync(join(folder, "core.h"), "utf8"), wasm)));
  const sources = [
    ...[join(folder, "core.c"), join(folder, "shim.c"), join(tools.runtime, "wasm-rt-impl.c")],
    ...SOURCES.filter((file) => file.endsWith(".c")).map((file) => join(here, file)),
  ];
  const includes = [folder, here, tools.include, tools.runtime].map((path) => `-I${path}`);
  run(cc.name, [...FLAGS, ...includes, "-o", library, ...sources, "-lm"]);
}

/** Copies a file into a folder under its own name, whole or not at all; what stands there is the same and stays. */
function put(file, folder) {
  const target = join(folder, basename(file));
  if (existsSync(target)) return target;
  mkdirSync(folder, { recursive: true });
  const part = `${target}.${process.pid}.part`;
  copyFileSync(file, part);
  renameSync(part, target);
  return target;
}

/** What a library is made from: module, shim and machine; not by which compiler. */
function origin(wasm) {
  const sum = createHash("sha256").update(wasm);
  for (const file of SOURCES) sum.update(readFileSync(join(here, file)));
  return `${process.platform} ${process.arch} ${sum.digest("hex")}`;
}

/** The library that a build has left in a folder, if it was made from the same; undefined otherwise. */
function prebuilt(wasm, folder) {
  try {
    const note = JSON.parse(readFileSync(join(folder, NOTE), "utf8"));
    const library = join(folder, basename(note.library));
    return note.origin === origin(wasm) && existsSync(library) ? library : undefined;
  } catch {
    return undefined;
  }
}

/** Copies a library into a folder, and notes what it was made from. Answers its path. */
function leave(library, wasm, folder) {
  const path = put(library, folder);
  writeFileSync(join(folder, NOTE), `${JSON.stringify({ origin: origin(wasm), library: basename(path) })}\n`);
  return path;
}

/** Both compilers. Throws with all that is missing, so that it can be brought at once. */
async function compilers(say) {
  const [tools, cc] = await Promise.allSettled([wabt({ say }), (async () => compiler())()]);
  const reasons = [tools, cc].flatMap(({ reason }) => (reason === undefined ? [] : [reason]));
  if (reasons.length === 0) return { tools: tools.value, cc: cc.value };
  const message = `the core is not there as native code, and can't be compiled: ${reasons.map((one) => one.message).join("; ")}`;
  throw reasons.every((one) => one instanceof Unavailable) ? new Unavailable(message) : new Error(message);
}

/**
 * The native library of a module, whose bytes are `wasm`: from the cache folder, or built. A library that is loaded somewhere
 * is never written to: another content has another name. Answers its path; throws Unavailable where a tool is missing.
 */
async function nativeLibrary(wasm, { say }) {
  const { tools, cc } = await compilers(say);
  const sum = createHash("sha256").update(wasm);
  for (const file of SOURCES) sum.update(readFileSync(join(here, file)));
  const key = sum.update(`${tools.version} ${cc.version} ${process.arch}`).digest("hex").slice(0, 16);
  const folder = join(cacheFolder(), "native");
  const kept = join(folder, `njet-kic-core-${key}.so`);
  if (existsSync(kept)) return kept;
  mkdirSync(folder, { recursive: true });
  const work = mkdtempSync(join(folder, "build-"));
  try {
    say(`compiling the core to native code with ${cc.version}`);
    const library = join(work, basename(kept));
    compile({ wasm, tools, cc, folder: work, library });
    renameSync(library, kept);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return kept;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      wasm: { type: "string", default: join(root, "dist", "core.wasm") },
      cached: { type: "boolean", default: false },
      out: { type: "string", default: join(root, "dist", "native") },
    },
  });
  await runScript(async (say) => {
    const wasm = readFileSync(values.wasm);
    const there = values.cached ? prebuilt(wasm, values.out) : undefined;
    const library = there ?? (await nativeLibrary(wasm, { say }));
    return { library: values.cached ? library : leave(library, wasm, values.out) };
  });
}
