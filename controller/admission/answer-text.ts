import { remedyOf } from "../errors.js";
import { type ObjectRef, refText } from "../resources/object-ref.js";
import type { Problem } from "../resources/problem.js";

/**
 * The API server cuts warnings short once all of them have more than 4,096 bytes, and asks for 256 at most in each
 * (AdmissionResponse.warnings); kubectl prints them one a line.
 */
const MAX_WARNINGS = 16;
const MAX_WARNING = 256;
/** Problems that a refusal lists, and their length. */
const MAX_LISTED = 20;
const MAX_LISTED_LENGTH = 600;

/** Warnings for the one who made the change, at most 16 of at most 256 characters. */
export function warningsOf(problems: readonly Problem[]): string[] {
  const lines = problems.map(({ path, code, message }) => line(`${place(path)}${message} (${code})`, MAX_WARNING));
  if (lines.length <= MAX_WARNINGS) return lines;
  const left = lines.length - MAX_WARNINGS + 1;
  return [...lines.slice(0, MAX_WARNINGS - 1), `${left} more warnings; njet-kic lint lists all of them`];
}

/** The text of a refusal: each problem with its field, code and remedy. `shown` is how many problems it names. */
export function messageOf(ref: ObjectRef, problems: readonly Problem[]): { message: string; shown: number } {
  const shown = problems.slice(0, MAX_LISTED);
  const texts = shown.map((problem) => line(`${place(problem.path)}${causeText(problem)}`, MAX_LISTED_LENGTH));
  const left = problems.length - shown.length;
  if (left > 0) texts.push(`${left} more problems are not listed`);
  return { message: `${line(refText(ref), MAX_LISTED_LENGTH)}: ${texts.join("; ")}`, shown: shown.length };
}

/** The text of one problem, with its code and remedy, where its field stands beside it. */
export function causeText({ code, message }: Problem): string {
  return line(`${message} (${code}: ${remedyOf(code)})`, MAX_LISTED_LENGTH);
}

function place(path: string): string {
  return path === "" ? "" : `${path}: `;
}

/** Printable ASCII on one line: what gets into headers and terminals. */
function line(text: string, max: number): string {
  const printable = text.replace(/[^\x20-\x7e]/g, "?");
  return printable.length > max ? `${printable.slice(0, max - 3)}...` : printable;
}
