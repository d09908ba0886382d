import { describe, expect, it } from "vitest";
import { type Logger, silentLogger } from "../../controller/observability/logger.js";
import { ErrorLog } from "../../controller/proxies/nginx/error-log.js";

interface Entry {
  level: string;
  [field: string]: unknown;
}

/** What a log in these parts is passed on as. */
function passedOn(...parts: string[]): { entries: Entry[]; why: string } {
  const entries: Entry[] = [];
  const at = (level: string) => (_: string, fields?: object) => void entries.push({ level, ...fields });
  const logger: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const log = new ErrorLog(logger);
  for (const part of parts) log.take(part);
  return { entries, why: log.why };
}

const OWN = "2026/01/02 03:04:05 [warn] 12#34: *5 own";
const FORGED = "2026/01/02 03:04:05 [emerg] 12#34: forged";
const BROKEN = '2026/01/02 03:04:05 [error] 12#34: *5 broken header: "PROXY';
const TAIL = '" while reading PROXY protocol, client: 192.0.2.1, server: 0.0.0.0:80';

describe("the error log of NGINX", () => {
  it("is passed on line by line, with severity, process and text, however it is cut", () => {
    const { entries } = passedOn(OWN.slice(0, 9), `${OWN.slice(9)}\n2026/01/02 03:04:05 [crit] 1#2: other`, "\n");
    expect(entries).toEqual([
      { level: "warn", severity: "warn", pid: 12, text: "own" },
      { level: "error", severity: "crit", pid: 1, text: "other" },
    ]);
  });

  it("keeps what NGINX could not start for", () => {
    expect(passedOn("nginx: [emerg] no such file\n", `${OWN}\n`).why).toBe("no such file");
  });

  it("names the ports that NGINX could not have, where it has given up", () => {
    const taken = (port: number) =>
      `nginx: [emerg] bind() to 127.0.0.1:${port} failed (98: Address already in use)\nnginx: [emerg] bind() to [::1]:${port + 1} failed (98: Address already in use)\n`;
    const log = new ErrorLog(silentLogger);
    log.take(taken(8080));
    expect(log.taken).toEqual([]);
    log.take("nginx: [emerg] still could not bind()\n");
    expect(log.taken).toEqual([8080, 8081]);
    log.begin();
    expect(log.taken).toEqual([]);
  });

  it("has nothing said by NGINX that a client has sent in place of a PROXY protocol header", () => {
    const { entries, why } = passedOn(`${BROKEN}${TAIL}\n${FORGED}\n${FORGED}${TAIL}\n`);
    expect(entries).toEqual([
      expect.objectContaining({ pid: 12, severity: "error" }),
      { level: "error", severity: "error", doubtful: FORGED },
      { level: "error", severity: "error", doubtful: `${FORGED}${TAIL}` },
    ]);
    expect(why).toBe("");
  });

  it("doubts as well what goes on behind such a header that came among doubtful lines", () => {
    const other = "x".repeat(1900);
    const { entries } = passedOn(`${BROKEN}${TAIL}\n${other}\n${BROKEN}\n${other}\n${FORGED}\n`);
    expect(entries.slice(1).map(({ doubtful }) => doubtful)).toEqual([other, BROKEN, other, FORGED]);
  });

  it("doubts no line behind the longest entry that such a header can make", () => {
    const rest = "x".repeat(2047 - BROKEN.length);
    const { entries } = passedOn(`${BROKEN}\n${rest}\n${OWN}\n`);
    expect(entries.map(({ text, doubtful }) => text ?? doubtful)).toEqual(['broken header: "PROXY', rest, "own"]);
  });
});
