/**
 * The regex engine of the core as the regex table drives it: the one file that knows its binding. Until there is one,
 * `openCoreRegex` answers undefined, and the table measures RegExp alone.
 */

/** A compiled pattern: whether it is found anywhere in a text. The copying of the text is part of the call. */
export interface Tester {
  test(text: string): boolean;
}

export interface CoreRegex {
  /** Compiles a pattern. Throws if the core does not take it. */
  compile(pattern: string, ignoreCase: boolean): Tester;
  close(): void;
}

export async function openCoreRegex(): Promise<CoreRegex | undefined> {
  return undefined;
}
