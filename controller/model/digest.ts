import { hash } from "node:crypto";

const known = new WeakMap<object, string>();

/**
 * Fingerprint of a piece of the model: 128 bits as hex. Pieces are built with their fields in one order, so equal
 * pieces have equal fingerprints on every replica. Pieces do not change once they are built, so that of each is made once:
 * the model asks for it, and then the planner.
 */
export function digest(piece: object): string {
  const before = known.get(piece);
  if (before !== undefined) return before;
  const made = hash("sha256", JSON.stringify(piece), "hex").slice(0, 32);
  known.set(piece, made);
  return made;
}
