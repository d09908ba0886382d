import { createHash } from "node:crypto";

/**
 * Fingerprint of a piece of the model: 128 bits as hex. Pieces are built with their fields in one order, so equal
 * pieces have equal fingerprints on every replica.
 */
export function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 32);
}
