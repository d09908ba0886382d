import { close, constants, open, read } from "node:fs";
import { readFile } from "node:fs/promises";

/** A pipe that has taken the place of a file would make a blocking open wait for somebody who writes. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Reads a regular file, of which `size` bytes are expected, as UTF-8. Rejects with the error of the file system. Such a
 * file gives all it has in one read, so this takes three calls; at 1,000 files a FileHandle, which takes more and wraps
 * each in promises, needs three times as long.
 */
export async function readText(path: string, size: number): Promise<string> {
  return (await readAtOnce(path, size)) ?? (await readFile(path, "utf8"));
}

/** Undefined if the file holds more than `size` bytes: it is being written, or the file system does not tell sizes. */
function readAtOnce(path: string, size: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    open(path, FLAGS, (openError, descriptor) => {
      if (openError !== null) {
        reject(openError);
        return;
      }
      const bytes = Buffer.allocUnsafe(size + 1);
      read(descriptor, bytes, 0, bytes.length, 0, (readError, length) => {
        close(descriptor, () => {
          if (readError !== null) reject(readError);
          else resolve(length > size ? undefined : bytes.toString("utf8", 0, length));
        });
      });
    });
  });
}
