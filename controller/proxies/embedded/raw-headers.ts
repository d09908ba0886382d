/** What undici tells of an answer's head: a flat list of names and values. */
import type { Dispatcher } from "undici";

/** undici gives raw headers as a flat list for HTTP/1; its type allows other forms. */
export function rawList(raw: Dispatcher.DispatchController["rawHeaders"]): readonly (Buffer | string)[] {
  return Array.isArray(raw) ? raw : [];
}

export function upgradeOf(raw: readonly (Buffer | string)[]): string | undefined {
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i].toString("latin1").toLowerCase() === "upgrade") return raw[i + 1].toString("latin1");
  }
  return undefined;
}
