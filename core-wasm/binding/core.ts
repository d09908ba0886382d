import type { PatternChecker } from "./api.js";
import { ShardCompiler } from "./compile/shard.js";
import type { CoreExports } from "./core-exports.js";
import { type CoreInput, type CoreModuleOrBytes, compileCore, isModule } from "./core-input.js";
import { CoreError, type CoreErrorCode, type RegexProblem } from "./errors.js";
import { RegexEngine, RegexProgram, regexImage } from "./regex.js";

/** Major version of the interface that this binding speaks. */
const ABI_MAJOR = 1;

const STATUS_CODES: Record<number, { code: CoreErrorCode; message: string }> = {
  [-1]: { code: "CORE_SOURCE_INVALID", message: "a regex does not compile" },
  [-2]: { code: "CORE_IMAGE_TRUNCATED", message: "the image ends before its stated size" },
  [-3]: { code: "CORE_IMAGE_MAGIC", message: "these bytes are no image of this kind" },
  [-4]: { code: "CORE_IMAGE_VERSION", message: "the image has another format version" },
  [-5]: { code: "CORE_IMAGE_CHECKSUM", message: "the image does not fit its checksum" },
  [-6]: { code: "CORE_IMAGE_CORRUPT", message: "an offset or count of the image is not allowed" },
  [-7]: { code: "CORE_SOURCE_INVALID", message: "the rules or peers can't be compiled" },
  [-8]: { code: "CORE_LIMIT", message: "a limit of the format is exceeded" },
  [-9]: { code: "CORE_MEMORY", message: "the core has no memory left" },
  [-10]: { code: "CORE_POINTER", message: "a pointer or length is not valid" },
  [-11]: { code: "CORE_STATE", message: "the call does not fit the state" },
  [-12]: {
    code: "CORE_IMAGE_UNSUPPORTED",
    message: "the image has a setting that must be understood and is not known",
  },
};

/** The error for a status below zero. `what` says what was being done. */
export function coreError(status: number, what: string): CoreError {
  const known = STATUS_CODES[status];
  return new CoreError(known?.code ?? "CORE_STATE", `${what}: ${known?.message ?? `status ${status}`}`);
}

/** One instance of core.wasm. It is not shared between threads; each thread makes its own. */
export class Core implements PatternChecker {
  readonly exports: CoreExports;
  #bytes = new Uint8Array(0);
  #regex: RegexEngine | undefined;
  #compiler: ShardCompiler | undefined;

  private constructor(exports: CoreExports) {
    this.exports = exports;
  }

  /**
   * Instantiates the core, which needs no imports: a compiled module, the bytes of core.wasm, the answer to a request for it, its
   * URL, or the promise of one of these. Throws CoreError CORE_UNREADABLE, CORE_ABI_VERSION.
   */
  static async load(input: CoreInput | PromiseLike<CoreInput>): Promise<Core> {
    return Core.fromInstance(await WebAssembly.instantiate(await compileCore(input)));
  }

  /** As load, of a module or bytes, for callers that must not wait and may compile synchronously. */
  static loadSync(input: CoreModuleOrBytes): Core {
    const module = isModule(input) ? (input as WebAssembly.Module) : new WebAssembly.Module(input as ArrayBuffer);
    return Core.fromInstance(new WebAssembly.Instance(module));
  }

  private static fromInstance(instance: WebAssembly.Instance): Core {
    // The exports are checked by their version: the type says what that version has.
    const exports = instance.exports as unknown as CoreExports;
    const version = typeof exports.abi_version === "function" ? exports.abi_version() : 0;
    if (version >> 8 !== ABI_MAJOR) {
      throw new CoreError("CORE_ABI_VERSION", `the core speaks interface ${version >> 8}, this binding ${ABI_MAJOR}`);
    }
    return new Core(exports);
  }

  /** The memory as bytes; to be taken anew after any call that may grow it. */
  bytes(): Uint8Array {
    if (this.#bytes.length === 0) this.#bytes = new Uint8Array(this.exports.memory.buffer);
    return this.#bytes;
  }

  /** Bytes that the core has in use. */
  get memoryUsed(): number {
    return this.exports.memory_used();
  }

  /** Copies bytes into fresh memory of the core. Throws CORE_MEMORY. The caller frees it. */
  place(data: Uint8Array): number {
    const pointer = this.exports.alloc(Math.max(1, data.length));
    if (!pointer) throw coreError(-9, "copying into the core");
    this.bytes().set(data, pointer);
    return pointer;
  }

  /** Calls `use` with the address of a copy of `data`, which is freed afterwards. */
  withBytes<T>(data: Uint8Array, use: (pointer: number, length: number) => T): T {
    const pointer = this.place(data);
    try {
      return use(pointer, data.length);
    } finally {
      this.exports.free(pointer);
    }
  }

  /** The compiler of shards, which all tables of the instance share. */
  get compiler(): ShardCompiler {
    this.#compiler ??= new ShardCompiler((pattern, flags) => regexImage(this.exports, pattern, flags));
    return this.#compiler;
  }

  /** Pattern checks and stand-alone regexes share one engine of the instance. */
  get regex(): RegexEngine {
    this.#regex ??= new RegexEngine(this.exports);
    return this.#regex;
  }

  checkRegex(pattern: string, ignoreCase: boolean): { groups: number } | { problem: RegexProblem } {
    const program = this.regex.compile(pattern, { ignoreCase });
    if (!(program instanceof RegexProgram)) return { problem: program };
    const { groups } = program;
    program.release();
    return { groups };
  }
}
