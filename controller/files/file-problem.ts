import type { FileProblemCode } from "../errors.js";

/** Something wrong with a file. Messages never hold text of the file, which may be a Secret. */
export interface FileProblem {
  /** As the source names it: relative to the folder. */
  file: string;
  /** Counted from 1, if it is known. */
  line?: number;
  code: FileProblemCode;
  message: string;
}
