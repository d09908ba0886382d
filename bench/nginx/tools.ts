import { execFile } from "node:child_process";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../controller/proxies/nginx/parts.js";

const UNAVAILABLE = 3;

/** A program can't be had on this machine; the message says why. */
export class ToolUnavailable extends Error {
  override readonly name = "ToolUnavailable";
}

/** What a script of this folder answers that finds or installs a program. Its progress goes to standard error. */
export function installed<T>(script: string, ...args: string[]): Promise<T> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [join(PACKAGE_ROOT ?? "", script), ...args], (error, stdout, stderr) => {
      if (!error) resolve(JSON.parse(stdout) as T);
      else if (error.code === UNAVAILABLE) reject(new ToolUnavailable(stderr.trim().split("\n").at(-1)));
      else reject(new Error(stderr.trim() || error.message));
    });
    child.stderr?.on("data", (text: string) => process.stderr.write(text));
  });
}
