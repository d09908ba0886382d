import { CoreError } from "./errors.js";

/** The part of a `Response` of `fetch` that is looked at; every runtime has more of it. */
export interface CoreResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly url: string;
  readonly headers: { get(name: string): string | null };
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** What gives the core without waiting: a module that the caller has compiled, or the bytes of core.wasm. */
export type CoreModuleOrBytes = WebAssembly.Module | ArrayBuffer | Uint8Array;

/** What gives the core: also the answer to a request for core.wasm, or the URL of it, which is then fetched. */
export type CoreInput = CoreModuleOrBytes | CoreResponse | { readonly href: string };

const WASM_TYPE = "application/wasm";

/** True for a module of any realm: one that another window, worker or context has compiled is no instance of ours. */
export function isModule(input: object): boolean {
  return Object.prototype.toString.call(input) === "[object WebAssembly.Module]";
}

function unreadable(reason: string): CoreError {
  return new CoreError("CORE_UNREADABLE", `core.wasm can't be had: ${reason}`);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * The compiled core. An answer with the type `application/wasm` is compiled while it arrives, where the runtime can do
 * that. Throws CoreError CORE_UNREADABLE where it can't be fetched or is no WebAssembly, and where the runtime compiles nothing.
 */
export async function compileCore(input: CoreInput | PromiseLike<CoreInput>): Promise<WebAssembly.Module> {
  const given = await input;
  if (isModule(given)) return given as WebAssembly.Module;
  try {
    if ("href" in given) return await fromResponse(await fetch(given.href));
    return "arrayBuffer" in given ? await fromResponse(given) : await WebAssembly.compile(given as ArrayBuffer);
  } catch (error) {
    throw error instanceof CoreError ? error : unreadable(reasonOf(error));
  }
}

async function fromResponse(response: CoreResponse): Promise<WebAssembly.Module> {
  if (!response.ok) throw unreadable(`${response.url || "the answer"} has the status ${response.status}`);
  const type = response.headers.get("content-type")?.split(";")[0].trim().toLowerCase();
  if (type === WASM_TYPE && typeof WebAssembly.compileStreaming === "function") {
    // Only what is a Response of this runtime gets here in earnest; the runtime refuses anything else.
    return WebAssembly.compileStreaming(response as Response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}
