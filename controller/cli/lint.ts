import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { FileProblem } from "../files/file-problem.js";
import { type LoadedObjects, loadPaths } from "../files/load-paths.js";
import type { State } from "../model/object-state.js";
import { RoutingModel } from "../model/routing-model.js";
import { refText } from "../resources/object-ref.js";
import { plain } from "../resources/problem.js";
import { type ModelChoices, modelChoices } from "./model-options.js";

/** An object, or a file that could not be read, as `lint --json` prints it. */
export interface LintRow {
  kind: string;
  namespace: string;
  name: string;
  state: State;
  reason: string;
  problems: { path: string; code: string; message: string }[];
}

/** Options of `lint`. */
export interface LintOptions extends ModelChoices {
  json: boolean;
}

/** Where the result is written, such as process.stdout. */
export interface LintOutput {
  write(text: string): unknown;
}

/**
 * `lint PATH...`: reads files and folders, builds the routing model as a folder source would, and prints every object
 * with its state and problems, collisions between objects included. Resolves with the exit status: 1 if an object is
 * Invalid or a file cannot be read, else 0.
 */
export async function runLint(
  paths: readonly string[],
  options: LintOptions,
  checker: PatternChecker,
  out: LintOutput,
): Promise<number> {
  const rows = lintRows(await loadPaths(paths), checker, options);
  out.write(options.json ? `${JSON.stringify(rows, null, 2)}\n` : formatTable(rows));
  return rows.some(({ state }) => state === "Invalid") ? 1 : 0;
}

function lintRows(loaded: LoadedObjects, checker: PatternChecker, options: ModelChoices): LintRow[] {
  const model = new RoutingModel({ checker, source: "folder", ...modelChoices(options) });
  model.update(loaded.objects);
  const duplicates = new Map(loaded.duplicates.map((duplicate) => [refText(duplicate.ref), duplicate.files]));
  const objects = model.allObjects().map(({ ref, state, reason, problems }): LintRow => {
    const row: LintRow = {
      ...ref,
      state,
      reason,
      problems: problems.map(({ path, code, message }) => ({ path, code, message })),
    };
    const files = duplicates.get(refText(ref));
    return files === undefined ? row : withDuplicate(row, files);
  });
  return [...loaded.problems.map(fileRow), ...objects];
}

function withDuplicate(row: LintRow, files: readonly string[]): LintRow {
  const message = `stands in more than one place: ${plain(files.join(", "))}; the first one counts`;
  const state = row.state === "Valid" ? "Warning" : row.state;
  const reason = row.reason === "AddedOrUpdated" ? "AddedOrUpdatedWithWarning" : row.reason;
  return { ...row, state, reason, problems: [...row.problems, { path: "", code: "OBJECT_DUPLICATE", message }] };
}

function fileRow({ file, line, code, message }: FileProblem): LintRow {
  const passedOver = code === "FILE_NO_OBJECT";
  return {
    kind: "File",
    namespace: "",
    name: file,
    state: passedOver ? "Warning" : "Invalid",
    reason: passedOver ? "Ignored" : "Rejected",
    problems: [{ path: line === undefined ? "" : `line ${line}`, code, message }],
  };
}

/** One line an object, its problems indented below, and a summary. */
function formatTable(rows: readonly LintRow[]): string {
  const cells = rows.map((row) => [row.state, row.kind, plain(nameOf(row)), row.reason]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...cells.map((line) => line[column].length)));
  const lines = rows.flatMap((row, index) => [
    cells[index].map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "),
    ...row.problems.map(({ path, code, message }) => `    ${code}${path === "" ? "" : ` ${path}`}: ${message}`),
  ]);
  const count = (state: State) => rows.filter((row) => row.state === state).length;
  const summary = `${count("Valid")} valid, ${count("Warning")} with warnings, ${count("Invalid")} invalid`;
  return `${[...lines, summary].join("\n")}\n`;
}

function nameOf({ namespace, name }: LintRow): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}
