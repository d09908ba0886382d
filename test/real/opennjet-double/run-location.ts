import type { Directive } from "./configuration-text.js";
import { pcrePattern } from "./pcre.js";
import type { Variables } from "./variables.js";

/** What a location makes of a request. */
export type Outcome =
  | { kind: "answer"; status: number; headers: Header[]; body: string; type: string }
  | { kind: "proxy"; pass: string; directives: Directive[] }
  | { kind: "status"; status: number; headers: Header[] };

export type Header = [name: string, value: string];

const REDIRECTS = [301, 302, 303, 307, 308];
/** Without `always`, headers are added to answers with these. */
const ADDED_TO = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

/** Runs the directives of a location: the rewrite phase, then what answers. */
export function runLocation(directives: Directive[], variables: Variables): Outcome {
  const returned = rewritePhase(directives, variables);
  if (returned && returned !== "break") return returned;
  if (directives.some(({ lua }) => lua !== undefined)) {
    return { kind: "answer", status: 500, headers: [], body: "the double has no Lua\n", type: "text/plain" };
  }
  const limit = argumentOf(directives, "client_max_body_size");
  const length = Number(variables.read("content_length") || "0");
  if (limit !== undefined && Number(limit) > 0 && length > Number(limit))
    return { kind: "status", status: 413, headers: [] };
  const pass = argumentOf(directives, "proxy_pass") ?? argumentOf(directives, "grpc_pass");
  return pass === undefined
    ? { kind: "status", status: 404, headers: [] }
    : { kind: "proxy", pass: variables.fill(pass), directives };
}

/** Runs the directives of a server, before a location is looked for; undefined where they answer nothing. */
export function runServer(directives: readonly Directive[], variables: Variables): Outcome | undefined {
  const returned = rewritePhase(directives, variables);
  return returned === "break" ? undefined : returned;
}

/** The last one of a name. */
export function argumentOf(directives: readonly Directive[], name: string): string | undefined {
  return directives.findLast((one) => one.name === name)?.args[0];
}

/** `add_header` for an answer with this status. */
export function addedHeaders(directives: readonly Directive[], variables: Variables, status: number): Header[] {
  const added: Header[] = [];
  for (const { name, args } of directives) {
    if (name !== "add_header" || (args[2] !== "always" && !ADDED_TO.includes(status))) continue;
    const value = variables.fill(args[1]);
    if (value !== "") added.push([args[0], value]);
  }
  return added;
}

function rewritePhase(directives: readonly Directive[], variables: Variables): Outcome | "break" | undefined {
  for (const directive of directives) {
    const { name, args, block } = directive;
    if (name === "set") variables.set.set(args[0].slice(1), variables.fill(args[1]));
    else if (name === "return") return returned(directives, directive, variables);
    else if (name === "if" && block && ifHolds(args, variables)) {
      const inner = rewritePhase(block, variables);
      if (inner) return inner;
    } else if (name === "rewrite") {
      const outcome = rewrite(directives, args, variables);
      if (outcome) return outcome;
    }
  }
  return undefined;
}

function returned(directives: readonly Directive[], { args }: Directive, variables: Variables): Outcome {
  const isUrl = !/^\d+$/.test(args[0]);
  const status = isUrl ? 302 : Number(args[0]);
  const text = isUrl ? args[0] : args[1];
  const headers = addedHeaders(directives, variables, status);
  if (text === undefined) return { kind: "status", status, headers };
  const filled = variables.fill(text);
  if (REDIRECTS.includes(status)) return { kind: "status", status, headers: [...headers, ["Location", filled]] };
  const type = argumentOf(directives, "default_type") ?? "text/plain";
  return { kind: "answer", status, headers, body: filled, type };
}

function rewrite(
  directives: readonly Directive[],
  args: string[],
  variables: Variables,
): Outcome | "break" | undefined {
  const [pattern, replacement, flag] = args;
  const groups = pcrePattern(pattern).exec(variables.path);
  if (!groups) return undefined;
  variables.groups = groups;
  const [path, query] = split(replacement);
  const text = variables.fill(path);
  if (flag === "redirect" || flag === "permanent" || /^https?:\/\/|^\$scheme/.test(replacement)) {
    const status = flag === "permanent" ? 301 : 302;
    const tail = query === undefined ? variables.query : variables.fill(query);
    const location = tail === "" ? text : `${text}?${tail}`;
    return {
      kind: "status",
      status,
      headers: [...addedHeaders(directives, variables, status), ["Location", location]],
    };
  }
  variables.path = text;
  variables.set.set("\0rewritten", "1");
  if (query !== undefined)
    variables.query = [variables.fill(query), variables.query].filter((one) => one !== "").join("&");
  return flag === "break" || flag === "last" ? "break" : undefined;
}

/** Whether `rewrite` has changed the path, so that it is sent to peers in a new writing. */
export function isRewritten(variables: Variables): boolean {
  return variables.set.has("\0rewritten");
}

function split(replacement: string): [path: string, query: string | undefined] {
  const mark = replacement.indexOf("?");
  return mark < 0 ? [replacement, undefined] : [replacement.slice(0, mark), replacement.slice(mark + 1)];
}

function ifHolds(args: string[], variables: Variables): boolean {
  const words = args
    .join(" ")
    .replace(/^\(\s*/, "")
    .replace(/\s*\)$/, "")
    .split(" ");
  const value = variables.fill(words[0]);
  if (words.length === 1) return value !== "" && value !== "0";
  const [, sign, ...rest] = words;
  const wanted = rest.join(" ");
  const negated = sign.startsWith("!");
  const plain = sign.replace("!", "");
  const holds = plain === "=" ? value === variables.fill(wanted) : pcrePattern(wanted, plain === "~*").test(value);
  return holds !== negated;
}
