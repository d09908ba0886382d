// One process at a time works on a cache folder: a lock file that holds the number of the process.
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";

/** A lock that was just made is not yet written. */
const FRESH_MS = 10_000;

/** True if somebody holds the lock who is still there. */
function isHeld(lock) {
  try {
    const pid = Number(readFileSync(lock, "utf8"));
    if (!Number.isInteger(pid) || pid <= 0) return Date.now() - statSync(lock).mtimeMs < FRESH_MS;
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function take(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
    if (!isHeld(lock)) rmSync(lock, { force: true });
    return false;
  }
}

/**
 * Runs `work` while this process holds the lock file `lock`. Waits for another holder, and does nothing if `done` says
 * then that there is nothing left to do.
 */
export async function withLock(lock, done, work) {
  while (!take(lock)) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    if (done()) return;
  }
  const drop = () => rmSync(lock, { force: true });
  process.once("exit", drop);
  try {
    if (!done()) await work();
  } finally {
    process.removeListener("exit", drop);
    drop();
  }
}
