/** Modules that trap, made with wabt: a small one, and the core itself with a few hosts that it does not survive. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Ways to trap: what the library calls them, and WebAssembly that does it and leaves a number. */
const TRAPS = {
  unreachable_code: ["Unreachable instruction executed", "(unreachable)"],
  out_of_bounds: ["Out-of-bounds access in linear memory or a table", "(i32.load (i32.const -4))"],
  division_by_zero: ["Integer divide by zero", "(i32.div_u (i32.const 1) (i32.const 0))"],
  overflow: ["Integer overflow on divide or truncation", "(i32.div_s (i32.const 0x80000000) (i32.const -1))"],
  recursion: ["Call stack exhausted", "(call $deeper (i32.const 0))"],
} as const;

export const TRAP_NAMES = Object.keys(TRAPS) as (keyof typeof TRAPS)[];

/** What the library says of a trap. */
export function trapText(name: keyof typeof TRAPS): string {
  return TRAPS[name][0];
}

/** Calls itself without end; what it does after the call keeps a compiler from making a loop of it. */
const DEEPER =
  "(func $deeper (param i32) (result i32) (i32.add (local.get 0) (call $deeper (i32.add (local.get 0) (i32.const 1)))))";

function programs(): string {
  const script = join(ROOT, "deploy/debian/wabt.mjs");
  return JSON.parse(execFileSync(process.execPath, [script], { encoding: "utf8" })).programs;
}

const folders: string[] = [];

/** Takes away what was assembled. */
export function removeModules(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

function assembled(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-wat-"));
  folders.push(folder);
  const source = join(folder, `${name}.wat`);
  const wasm = join(folder, `${name}.wasm`);
  writeFileSync(source, text);
  execFileSync(join(programs(), "wat2wasm"), [source, "-o", wasm]);
  return wasm;
}

/** Path of a module with a function for each trap, and `sound`, which answers 42. */
export function smallModule(): string {
  const functions = TRAP_NAMES.map((name) => `(func (export "${name}") (result i32) ${TRAPS[name][1]})`);
  return assembled(
    "traps",
    `(module (memory (export "memory") 1) ${DEEPER} ${functions.join("\n")}
      (func (export "sound") (result i32) (i32.const 42))
      (func (export "abi_version") (result i32) (i32.const 256)))`,
  );
}

/** A host that makes the core of `trappingCore` trap. */
export function deadlyHost(name: keyof typeof TRAPS): string {
  return "t".repeat(200 + TRAP_NAMES.indexOf(name));
}

/** Path of the core whose `route` traps for the deadly hosts, and is the core's otherwise. */
export function trappingCore(): string {
  const text = execFileSync(join(programs(), "wasm2wat"), [join(ROOT, "dist/core.wasm")], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  const route = /\(export "route" \(func (\d+)\)\)/.exec(text);
  if (!route) throw new Error("the core has no export route");
  const branches = TRAP_NAMES.map(
    (name) => `(if (i32.eq (local.get 1) (i32.const ${deadlyHost(name).length})) (then (return ${TRAPS[name][1]})))`,
  );
  const guarded = `${DEEPER}
    (func $guarded (param i32 i32 i32 i32 i32) (result i32) ${branches.join("\n")}
      (call ${route[1]} (local.get 0) (local.get 1) (local.get 2) (local.get 3) (local.get 4)))`;
  const end = text.trimEnd().replace(/\)$/, "");
  return assembled("core", `${end.replace(route[0], '(export "route" (func $guarded))')}\n${guarded})`);
}

/** More headers than this make the filter of `trappingFilter` trap. */
export const MOST_HEADERS = 50;

/** Path of the filter of Envoy whose requests trap where they have too many headers, and are the filter's otherwise. */
export function trappingFilter(): string {
  const text = execFileSync(join(programs(), "wasm2wat"), [join(ROOT, "dist/envoy-filter.wasm")], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  const callback = /\(export "proxy_on_request_headers" \(func (\d+)\)\)/.exec(text);
  if (!callback) throw new Error("the filter has no callback for requests");
  const guarded = `(func $guarded (param i32 i32 i32) (result i32)
      (if (i32.gt_u (local.get 1) (i32.const ${MOST_HEADERS})) (then (unreachable)))
      (call ${callback[1]} (local.get 0) (local.get 1) (local.get 2)))`;
  const end = text.trimEnd().replace(/\)$/, "");
  return assembled(
    "filter",
    `${end.replace(callback[0], '(export "proxy_on_request_headers" (func $guarded))')}\n${guarded})`,
  );
}
