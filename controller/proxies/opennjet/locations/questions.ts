/**
 * Questions whether a worker has a location: OpenNJet has no list of them, and the answer of its API says only that its agent has taken
 * a change. Each location has an id and answers itself to a question for it, with the process id of the worker; no other location takes
 * the question. Its path names two folders that follow from a secret: who does not know it can ask nothing, and all that he sends is
 * an ordinary request.
 */
import { createHash } from "node:crypto";
import type { HostPattern } from "../../../../core-wasm/binding/source.js";
import { word } from "./configuration-text.js";
import { directive } from "./directives.js";
import { type Expression, equalTo } from "./expression.js";

/** A request that is a question. */
export interface Question {
  host: string;
  path: string;
}

/** The id that a request asks for, and NOBODY where it asks for none: a variable of the static configuration. */
const ASKED = "njet_kic_asked";
const NOBODY = "none";
const FOLDER = /^[0-9a-f]{32}$/;

/** The folder of all questions of one OpenNJet. */
export function questionFolder(secret: string): string {
  return digestOf(`questions ${secret}`);
}

/**
 * The folder of questions for locations that take what no condition takes. A static location answers for all that is not there in the
 * other folder, before the patterns of such locations are tried; here it comes after them.
 */
function lastFolder(folder: string): string {
  return digestOf(`last ${folder}`);
}

/** 20 hexadecimal digits. */
export function questionId(...texts: readonly (string | number)[]): string {
  return digestOf(JSON.stringify(texts)).slice(0, 20);
}

/** The question for a location with a condition, of a host that its pattern covers and no better one: nobody can name the folder. */
export function questionOf(pattern: HostPattern, id: string, folder: string): Question {
  const path = `/${folder}/${id}`;
  switch (pattern.kind) {
    case "exact":
      return { host: pattern.host, path };
    case "wildcard":
      return { host: `${folder}.${pattern.suffix}`, path };
    case "any":
      return { host: folder, path };
    case "default":
      return { host: folder, path: `/${lastFolder(folder)}/${id}` };
  }
}

/** That a request is no question. */
export const NO_QUESTION: Expression = equalTo(ASKED, NOBODY);

/** That a request asks for this id. */
export function asksFor(id: string): Expression {
  return equalTo(ASKED, id);
}

/** A pattern for all paths but for questions to others than this id, of a location that takes what no condition takes. */
export function lastPattern(id: string, folder: string): string {
  return `^(?!/${lastFolder(folder)}/(?!${id}))`;
}

/**
 * The directive that answers, before all others of a location: a redirect to id and process, since a location has no other directive that
 * looks at the request. It costs one try of a pattern that fails at the second character.
 */
export function answerLine(folder: string): string {
  const folders = `${folder}|${lastFolder(folder)}`;
  return directive("rewrite", word(`^/(?:${folders})/`), word(`http://\${${ASKED}}/\${pid}?`), "redirect");
}

/** The map of the static configuration that tells questions; without a folder no request is one. Throws a RangeError for one that is none. */
export function questionMap(folder: string | undefined): {
  source: string;
  variable: string;
  values: [string, string][];
} {
  const values: [string, string][] = [["default", NOBODY]];
  if (folder !== undefined) {
    if (!FOLDER.test(folder)) throw new RangeError("the folder of questions is 32 hexadecimal digits");
    values.push([`~^/(?:${folder}|${lastFolder(folder)})/([0-9a-f]+)$`, "$1"]);
  }
  return { source: "$uri", variable: `$${ASKED}`, values };
}

/** The map, and one by which questions stay out of the access log: `logged` is the name of its variable. */
export function questionMaps(folder: string | undefined, logged: string): string[] {
  const { source, variable, values } = questionMap(folder);
  const entries = values.map(([from, to]) => `${from === "default" ? from : word(from)} ${to};`).join(" ");
  const asked = `map ${source} ${variable} { ${entries} }`;
  return folder === undefined ? [asked] : [asked, `map ${variable} $${logged} { ${NOBODY} 1; default 0; }`];
}

/** Static locations that answer for what is not there, with the process. They reach no peer. */
export function withoutLocation(folder: string): string[] {
  const answer = directive("return", "404", word("${pid}"));
  return [`location ^~ /${folder}/ { ${answer} }`, `location /${lastFolder(folder)}/ { ${answer} }`];
}

/** The data plane, as a client sees it. */
export interface DataPlane {
  /** A connection of its own: any worker may get it, and one worker gets all that is asked on it. */
  connect(): PlaneConnection;
  /** Worker processes that serve; at least 1. */
  workers(): number;
}

export interface PlaneConnection {
  /** One at a time. Rejects where nobody answers, and once the connection has ended. */
  ask(question: Question): Promise<PlaneAnswer>;
  close(): void;
}

export interface PlaneAnswer {
  status: number;
  /** The header; undefined without. */
  location: string | undefined;
  body: string;
}

/** What a worker, named by its process, says of a location. */
export interface Said {
  isThere: boolean;
  process: string;
}

/** Undefined for an answer that is none to a question. Rejects where nobody answers. */
export async function askWorker(connection: PlaneConnection, question: Question): Promise<Said | undefined> {
  const { status, location, body } = await connection.ask(question);
  const id = question.path.slice(question.path.lastIndexOf("/") + 1);
  const start = `http://${id}/`;
  if (status === 302 && location?.startsWith(start)) return { isThere: true, process: location.slice(start.length) };
  return status === 404 && /^\d+$/.test(body) ? { isThere: false, process: body } : undefined;
}

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
