import { readFileSync } from "node:fs";

/** Fields of /proc/PID/stat behind the name (proc(5)): the first is the state, the 20th the time of the start. */
const STATE = 0;
const START_TIME = 19;
/** Ended; only its parent has not asked for its status yet. */
const ENDED = ["Z", "X"];

/**
 * What tells a process from a later one that has its number: the time of its start. Undefined where there is none with that
 * number, it has ended, or the system does not tell.
 */
export function processIdentity(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name is in parentheses, and may hold any character.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return ENDED.includes(fields[STATE]) ? undefined : fields[START_TIME];
  } catch {
    return undefined;
  }
}
