/** Stable codes of the errors that the core and its binding report. The page that explains them is ERRORS.md. */
export type CoreErrorCode =
  | "CORE_UNREADABLE"
  | "CORE_ABI_VERSION"
  | "CORE_IMAGE_TRUNCATED"
  | "CORE_IMAGE_MAGIC"
  | "CORE_IMAGE_VERSION"
  | "CORE_IMAGE_CHECKSUM"
  | "CORE_IMAGE_CORRUPT"
  | "CORE_IMAGE_UNSUPPORTED"
  | "CORE_SOURCE_INVALID"
  | "CORE_LIMIT"
  | "CORE_MEMORY"
  | "CORE_POINTER"
  | "CORE_STATE";

/** An error of the core: never caused by a request, always by a wrong image, a wrong source or a wrong call. */
export class CoreError extends Error {
  override readonly name = "CoreError";
  constructor(
    readonly code: CoreErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** A pattern that the regex engine does not take: where (byte offset) and why. */
export interface RegexProblem {
  position: number;
  message: string;
}
