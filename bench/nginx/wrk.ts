/** Load from wrk: kept connections, each of which sends a request when the answer before it is whole. */
import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryFolder } from "./contestants.js";
import { CONDITION_HEADER, type Request } from "./site.js";
import { installed } from "./tools.js";

const exec = promisify(execFile);
const CONNECTIONS = 32;
/** What a browser sends besides. */
const HEADERS =
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept: text/html,application/xhtml+xml\r\n" +
  "Accept-Language: en\r\nAccept-Encoding: gzip, br\r\nCookie: theme=dark\r\n";

export interface WrkReport {
  requests: number;
  /** Requests a second, by the clock. */
  perSecond: number;
}

export function requestText({ host, path, tenant }: Request): string {
  const condition = tenant === undefined ? "" : `${CONDITION_HEADER}: ${tenant}\r\n`;
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${HEADERS}${condition}\r\n`;
}

/** Requests are made before the load begins, so that wrk is not what is measured. */
function scriptOf(requests: readonly Request[]): string {
  return [
    "local requests = {",
    ...requests.map((request) => `${JSON.stringify(requestText(request)).replaceAll("\\r\\n", "\\13\\10")},`),
    "}",
    "local next, count = 0, #requests",
    "function request()",
    "  next = next % count + 1",
    "  return requests[next]",
    "end",
    "function done(summary)",
    "  local errors = summary.errors",
    '  io.write("\\n@", summary.requests, " ", summary.duration, " ", errors.connect + errors.read + errors.write + errors.timeout, " ",',
    '    errors.status, "\\n")',
    "end",
    "",
  ].join("\n");
}

export class Wrk {
  private readonly folder = temporaryFolder();
  private number = 0;

  private constructor(
    private readonly program: { binary: string; env: Record<string, string> },
    private readonly processor: number,
  ) {}

  static async prepare(processor: number): Promise<Wrk> {
    return new Wrk(await installed("bench/nginx/install-wrk.mjs"), processor);
  }

  /** A file with requests, for `run`. */
  script(requests: readonly Request[]): string {
    const file = join(this.folder, `${++this.number}.lua`);
    writeFileSync(file, scriptOf(requests));
    return file;
  }

  /** Throws where a request failed. */
  async run(port: number, script: string, seconds: number): Promise<WrkReport> {
    const { binary, env } = this.program;
    const args = ["-c", String(this.processor), binary, "-t", "1", "-c", String(CONNECTIONS), "-d", `${seconds}s`];
    const all = [...args, "-s", script, `http://127.0.0.1:${port}/`];
    const { stdout } = await exec("taskset", all, { env: { ...process.env, ...env } });
    const [, requests, microseconds, broken, refused] = (/@(\d+) (\d+) (\d+) (\d+)/.exec(stdout) ?? []).map(Number);
    if (!requests || broken > 0 || refused > 0) throw new Error(`requests have failed: ${stdout}`);
    return { requests, perSecond: (requests * 1e6) / microseconds };
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
