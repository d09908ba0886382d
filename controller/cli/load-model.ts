import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { FileProblem } from "../files/file-problem.js";
import { loadPaths } from "../files/load-paths.js";
import { RoutingModel } from "../model/routing-model.js";
import { type ModelChoices, modelChoices } from "./model-options.js";

/**
 * The model of everything that a file or folder holds. Problems of files are handed to `warn`, with their code. Undefined if
 * the path itself cannot be read.
 */
export async function loadModel(
  checker: PatternChecker,
  options: ModelChoices & { configDir: string },
  warn: (text: string, code: FileProblem["code"]) => void,
): Promise<RoutingModel | undefined> {
  const { configDir } = options;
  const loaded = await loadPaths([configDir]);
  for (const { file, line, message, code } of loaded.problems)
    warn(`${file}${line === undefined ? "" : `:${line}`}: ${message}`, code);
  if (loaded.problems.some(({ file, code }) => file === configDir && code === "FILE_UNREADABLE")) return undefined;
  const model = new RoutingModel({ checker, source: "folder", ...modelChoices(options) });
  model.update(loaded.objects);
  return model;
}
