/** What the core may answer to a call, right or wrong. A verdict is what is wrong with its answer, if anything. */
import type { Belongings } from "./straying-belongings.js";

export const OK = 0;
export const E_POINTER = -10;

/** Calls by the export that they call. */
export type Calls = Record<string, () => string | undefined>;

/** Any status that there is. */
export function anyStatus(status: number): string | undefined {
  return status <= OK && status >= -12 ? undefined : `status ${status}`;
}

/** A number of a peer or a position, or a status. */
export function anyAnswer(answer: number): string | undefined {
  return answer >= -12 ? undefined : `answer ${answer}`;
}

/** Of a call with a handle: POINTER where it is none, else one of `allowed`. */
export function judged(
  my: Belongings,
  kind: "context" | "tracker",
  handle: number,
  status: number,
  allowed: number[],
): string | undefined {
  const known = kind === "context" ? my.contexts.has(handle) : my.trackers.has(handle);
  if (known ? allowed.includes(status) : status === E_POINTER) return undefined;
  return `status ${status} for ${known ? "a" : "no"} ${kind}`;
}

/** Of a call that ends what a handle stands for; `ended` keeps the books. */
export function ends(
  my: Belongings,
  kind: string,
  handle: number,
  known: boolean,
  status: number,
  ended: () => void,
): string | undefined {
  if (status !== (known ? OK : E_POINTER)) return `status ${status} at the end of ${known ? "a" : "no"} ${kind}`;
  if (known) {
    ended();
    my.past.push(handle);
  }
  return undefined;
}
