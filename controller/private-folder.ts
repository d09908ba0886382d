/** Folders that hold secrets, on a machine where others may have been before us. */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";

/** For nobody but us. */
export const PRIVATE = 0o700;
/** Others may go through, and see nothing: for a folder on the way to what is theirs. */
export const PASSABLE = 0o711;

/**
 * Makes a folder if it is not there, or takes one over: it gets its mode, and what others have put into it goes before anything
 * of it is used, since it may lead a file of ours elsewhere: symbolic links, what another user owns, and, if others could write
 * there, second names of files. `foreignFolders`: folders of other users stay. Answers the names of what went. Throws an Error
 * for what is no folder, is another user's, or can't be cleared.
 */
export function claimFolder(path: string, mode: number, { foreignFolders = false } = {}): string[] {
  mkdirSync(path, { recursive: true, mode });
  const wasOpen = secure(path, mode);
  const gone: string[] = [];
  for (const name of readdirSync(path)) {
    const found = lstatSync(join(path, name));
    const foreign = !isOurs(found.uid) && !(foreignFolders && found.isDirectory());
    const doubled = wasOpen && found.isFile() && found.nlink > 1;
    if (!foreign && !doubled && !found.isSymbolicLink()) continue;
    try {
      rmSync(join(path, name), { recursive: true, force: true });
    } catch {
      throw new Error(`${join(path, name)} is not ours, and can't be taken away`);
    }
    gone.push(name);
  }
  return gone;
}

/** Whether somebody else could put another folder in the place of one that is in `parent`. */
export function isReplaceable(parent: string): boolean {
  const { uid, mode } = statSync(parent);
  const writable = (mode & 0o022) !== 0;
  const sticky = (mode & 0o1000) !== 0;
  return (writable && !sticky) || !(isOurs(uid) || uid === 0);
}

/** Gives a folder its mode; true if others could write there before. */
function secure(path: string, mode: number): boolean {
  const fd = openFolder(path);
  try {
    const found = fstatSync(fd);
    if (!isOurs(found.uid)) throw new Error(`${path} is no folder of our own`);
    if ((found.mode & 0o777) !== mode) fchmodSync(fd, mode);
    return (found.mode & 0o022) !== 0;
  } finally {
    closeSync(fd);
  }
}

/** The folder itself, whatever is put in its place meanwhile. */
function openFolder(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    throw new Error(`${path} is no folder of our own (${(error as NodeJS.ErrnoException).code})`);
  }
}

function isOurs(uid: number): boolean {
  return process.getuid === undefined || uid === process.getuid();
}
