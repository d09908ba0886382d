import { type ChildProcess, execFile, spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * Brings the access log of NGINX to our standard output, through a named pipe and a process that only copies: NGINX can't open
 * a standard output that is a socket, and one that outlives its controller would write to nobody. A reader of our output that
 * is stuck holds NGINX up, as it would if NGINX wrote to it itself.
 */
export class AccessLogPipe {
  private constructor(
    private readonly held: FileHandle,
    private readonly copier: ChildProcess,
  ) {}

  /** Makes the pipe at `path`, in the place of what stands there that is none. */
  static async open(path: string): Promise<AccessLogPipe> {
    let held = await openPipe(path).catch(() => undefined);
    if (held === undefined) {
      await rm(path, { force: true });
      await run("mkfifo", ["-m", "600", path]);
      held = await openPipe(path);
    }
    // As long as we hold the other end it does not see an end of the file while NGINX is started again.
    const copier = spawn("cat", [path], { stdio: ["ignore", "inherit", "ignore"], detached: true });
    copier.on("error", () => undefined);
    return new AccessLogPipe(held, copier);
  }

  /** Resolves when everything that NGINX has written is out; NGINX has to have ended. */
  async close(graceMs = 1_000): Promise<void> {
    const { copier } = this;
    const gone = new Promise<void>((resolve) => {
      if (copier.exitCode !== null || copier.signalCode !== null || copier.pid === undefined) resolve();
      else copier.once("exit", () => resolve());
    });
    await this.held.close();
    const timer = setTimeout(() => copier.kill(), graceMs);
    await gone;
    clearTimeout(timer);
  }
}

/** Both ends, so that opening it waits for nobody. Rejects for what is no pipe. */
async function openPipe(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  if ((await file.stat()).isFIFO()) return file;
  await file.close();
  throw new Error("no pipe");
}
