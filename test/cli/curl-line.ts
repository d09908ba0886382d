import type { AskOptions } from "../support/http-client.js";

/** A request as a printed curl line asks for it. */
export interface CurlRequest extends AskOptions {
  port: number;
}

/** The words of a shell line: blanks between, single quotes around. A line that needs more of a shell is an error. */
function words(line: string): string[] {
  if (/[?*&;|<>$`"\\]/.test(line.replaceAll(/'[^']*'/g, ""))) throw new Error(`a shell would change: ${line}`);
  return (line.match(/(?:'[^']*'|[^\s'])+/g) ?? []).map((word) => word.replaceAll("'", ""));
}

/** Reads a curl line of the few options that the sample prints; any other option is an error. */
export function parseCurl(line: string): CurlRequest {
  const [command, ...rest] = words(line.trim());
  if (command !== "curl") throw new Error(`not a curl line: ${line}`);
  const headers: Record<string, string> = {};
  const found: Partial<CurlRequest> = { headers };
  let url: URL | undefined;
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "-H") {
      const [name, value] = splitAt(next(rest), ":");
      if (name === "Host") found.host = value;
      else headers[name] = value;
    } else if (word === "-b") headers.Cookie = next(rest);
    else if (word === "-X") found.method = next(rest);
    else if (word === "--resolve") {
      // HOST:PORT:ADDRESS, which must be loopback: that is where requests of tests go.
      const [host, port, address] = next(rest).split(":");
      if (address !== "127.0.0.1") throw new Error(`resolves ${host}:${port} elsewhere: ${line}`);
    } else if (word.startsWith("http") && !url) url = new URL(word);
    else if (word !== "-k" && word !== "-i") throw new Error(`unknown option ${word} in ${line}`);
  }
  if (!url) throw new Error(`no URL in ${line}`);
  return {
    ...found,
    host: found.host ?? url.hostname,
    port: Number(url.port),
    path: `${url.pathname}${url.search}`,
    tls: url.protocol === "https:",
  };
}

function next(rest: string[]): string {
  const word = rest.shift();
  if (word === undefined) throw new Error("an option without its value");
  return word;
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return [text.slice(0, at), text.slice(at + 1).trim()];
}
