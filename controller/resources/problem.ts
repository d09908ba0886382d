import type { ProblemCode } from "../errors.js";

/** `error` makes the object Invalid: it is not served. `warning` leaves it served. */
export type Severity = "error" | "warning";

/** Something wrong with an object. */
export interface Problem {
  /** Where, such as `spec.rules[0].http.paths[1].path`; empty for the object as a whole. */
  path: string;
  code: ProblemCode;
  /** What is wrong and what to do. Safe to print: values from objects are quoted and shortened. */
  message: string;
  severity: Severity;
}

/** No object needs more to be repaired; a hostile one must not fill the log. */
const MAX_PROBLEMS = 100;

/** Collects the problems of one object. */
export class ProblemList {
  #problems: Problem[] = [];
  #dropped = 0;
  #hasError = false;

  error(path: string, code: ProblemCode, message: string): void {
    this.#hasError = true;
    this.#add({ path, code, message, severity: "error" });
  }

  warning(path: string, code: ProblemCode, message: string): void {
    this.#add({ path, code, message, severity: "warning" });
  }

  /** True if the object must not be served, also when the error itself was not listed any more. */
  get hasError(): boolean {
    return this.#hasError;
  }

  /** The problems in the order in which they were found, at most 101. */
  list(): Problem[] {
    if (this.#dropped === 0) return this.#problems;
    const message = `${this.#dropped} more problems are not listed`;
    const severity = this.#hasError ? "error" : "warning";
    return [...this.#problems, { path: "", code: "LIMIT_EXCEEDED", message, severity }];
  }

  #add(problem: Problem): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(problem);
    else this.#dropped += 1;
  }
}

const MAX_QUOTED = 80;

/**
 * A value of an object in double quotes, shortened, with everything outside of printable ASCII escaped, so that it
 * can neither break a log line nor disguise itself in a terminal.
 */
export function quote(text: string): string {
  return escapeUnprintable(JSON.stringify(shorten(text, MAX_QUOTED)));
}

/** A message that came from elsewhere, made safe to print like a quoted value. */
export function plain(text: string): string {
  return escapeUnprintable(shorten(text, 3 * MAX_QUOTED));
}

function shorten(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}...` : text;
}

function escapeUnprintable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
