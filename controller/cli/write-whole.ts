import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";

/** Puts a file in place whole or not at all: a program that watches it never reads a part. */
export async function writeWhole(path: string, bytes: Uint8Array, mode = 0o644): Promise<void> {
  const made = `${path}.${randomBytes(6).toString("hex")}.part`;
  try {
    const file = await open(made, "wx", mode);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(made, path);
  } catch (error) {
    await rm(made, { force: true });
    throw error;
  }
}
