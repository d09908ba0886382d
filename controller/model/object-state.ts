import type { ObjectRef } from "../resources/object-ref.js";
import type { Problem } from "../resources/problem.js";

export type State = "Valid" | "Warning" | "Invalid";

/** Reasons, also those of status and Events, named as the NGINX family names them. */
export type Reason =
  | "AddedOrUpdated"
  | "AddedOrUpdatedWithWarning"
  | "AddedOrUpdatedWithError"
  | "Rejected"
  | "NoVirtualServerFound"
  | "Ignored";

/**
 * What became of an object. Invalid ones are not served at all, or as they were before the proxy refused them; of the
 * others at least a part is, unless ignored.
 */
export interface ObjectState {
  ref: ObjectRef;
  state: State;
  reason: Reason;
  problems: Problem[];
}

/** State of an object with these problems. `reason` is kept if it says more than added or updated. */
export function stateOf(ref: ObjectRef, problems: readonly Problem[], reason?: Reason): ObjectState {
  const distinct = [...new Map(problems.map((problem) => [problemKey(problem), problem])).values()];
  if (distinct.some((problem) => problem.severity === "error")) {
    return { ref, state: "Invalid", reason: "Rejected", problems: distinct };
  }
  if (distinct.length > 0) {
    return { ref, state: "Warning", reason: reason ?? "AddedOrUpdatedWithWarning", problems: distinct };
  }
  return { ref, state: "Valid", reason: reason ?? "AddedOrUpdated", problems: distinct };
}

/** The state of an object that would be in `state` if the proxy had not refused parts of it, for these reasons. */
export function refusedState(state: ObjectState, refused: readonly Problem[]): ObjectState {
  if (refused.length === 0 || state.state === "Invalid") return state;
  const invalid = refused.some(({ severity }) => severity === "error");
  const problems = [...refused, ...state.problems];
  return { ...state, state: invalid ? "Invalid" : "Warning", reason: "AddedOrUpdatedWithError", problems };
}

function problemKey(problem: Problem): string {
  return `${problem.code}\0${problem.path}\0${problem.message}`;
}
