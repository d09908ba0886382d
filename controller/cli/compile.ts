import type { Core } from "../../core-wasm/binding/core.js";
import { bundleOf } from "../model/bundle.js";
import type { RoutingModel } from "../model/routing-model.js";
import { refText } from "../resources/object-ref.js";
import { plain } from "../resources/problem.js";
import type { LintOutput } from "./lint.js";
import { loadModel } from "./load-model.js";
import type { ModelChoices } from "./model-options.js";
import { writeWhole } from "./write-whole.js";

/** Options of `compile`. */
export interface CompileOptions extends ModelChoices {
  configDir: string;
  /** Path of the file to write. */
  out: string;
  /** Write nothing if anything is Invalid. */
  strict: boolean;
}

/**
 * `compile`: writes the bundle of everything that a file or folder holds, and a line about it to `out`. What is Invalid is
 * left out, as in a proxy, and named on `errors`. Resolves with the exit status: 0 written; 1 with `strict`, something is
 * Invalid and nothing is written; 2 the folder cannot be read or the file not be written.
 */
export async function runCompile(
  core: Core,
  options: CompileOptions,
  out: LintOutput,
  errors: LintOutput,
): Promise<number> {
  let invalid = 0;
  const tell = (text: string, code?: string) => {
    // A file without objects is passed over.
    if (code !== "FILE_NO_OBJECT") invalid++;
    errors.write(`${text}\n`);
  };
  const model = await loadModel(core, options, tell);
  if (model === undefined) return 2;
  for (const line of invalidObjects(model)) tell(line);
  const snapshot = model.snapshot();
  const { bytes, refused } = bundleOf(snapshot, core);
  for (const { piece, error } of refused) tell(`${plain(piece)}: ${error.message} (${error.code})`);
  if (options.strict && invalid > 0) {
    errors.write("nothing is written, because of --strict\n");
    return 1;
  }
  try {
    await writeWhole(options.out, bytes);
  } catch (error) {
    errors.write(`${options.out}: ${(error as Error).message}\n`);
    return 2;
  }
  const { hosts, upstreams } = snapshot;
  out.write(`${options.out}: ${hosts.size} hosts, ${upstreams.size} upstreams, ${bytes.length} bytes\n`);
  return 0;
}

function* invalidObjects(model: RoutingModel): Iterable<string> {
  for (const { ref, state, problems } of model.allObjects()) {
    if (state !== "Invalid") continue;
    const details = problems.map(({ path, code, message }) => `${path === "" ? "" : `${path}: `}${message} (${code})`);
    yield `${plain(refText(ref))} is Invalid: ${details.join("; ")}`;
  }
}
