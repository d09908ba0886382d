/** `transcript.txt`: what was asked of a real OpenNJet 4.0.1, and what it answered, as steps that can be replayed. */
import { readFileSync } from "node:fs";

/** A request of the transcript, with the answer that is written below it. */
export interface RequestStep {
  kind: "request";
  /** Line of the file, from 1. */
  line: number;
  /** The command, for titles. */
  title: string;
  method: string;
  url: URL;
  headers: Record<string, string>;
  body?: string;
  /** Head and body are written down. */
  withHead: boolean;
  /** `-> HTTP` with a time: a request to the control server, whose answer stands on lines of its own. */
  answer: string;
  status: number;
}

/** Anything else that says something: it is replayed by its own words, or named with a reason. */
export interface OtherStep {
  kind: "other";
  line: number;
  text: string;
}

export type Step = RequestStep | OtherStep;

export const TRANSCRIPT = new URL("./transcript.txt", import.meta.url);

/** The steps of the transcript, in order. Headings and empty lines are none. */
export function readTranscript(): Step[] {
  const lines = readFileSync(TRANSCRIPT, "utf8").split("\n");
  const steps: Step[] = [];
  for (let at = 0; at < lines.length; at++) {
    const text = lines[at];
    if (text === "" || text.startsWith("### ")) continue;
    if (!text.startsWith("$ curl ")) {
      steps.push({ kind: "other", line: at + 1, text });
      continue;
    }
    const start = at;
    while (!/-> HTTP \d+/.test(lines[at])) at++;
    steps.push(requestOf(start + 1, text, lines.slice(start + 1, at + 1).join("\n")));
  }
  return steps;
}

function requestOf(line: number, command: string, written: string): RequestStep {
  const words = wordsOf(command).slice(2);
  const headers: Record<string, string> = {};
  let method: string | undefined;
  let body: string | undefined;
  let url = "";
  let withHead = false;
  for (let i = 0; i < words.length; i++) {
    if (words[i] === "-X") method = words[++i];
    else if (words[i] === "-d") body = words[++i];
    else if (words[i] === "-b") headers.Cookie = words[++i];
    else if (words[i] === "-i") withHead = true;
    else if (words[i] === "-H") {
      const name = words[++i].replace(/:$/, "");
      headers[name] = words[++i];
    } else url = words[i];
  }
  const [, answer, status, time] = /^([\s\S]*)-> HTTP (\d+)( [\d.]+s)?$/.exec(written) ?? [];
  return {
    kind: "request",
    line,
    title: command.slice(2),
    method: method ?? (body === undefined ? "GET" : "POST"),
    url: new URL(url),
    headers,
    ...(body !== undefined && { body }),
    withHead,
    // A line end is written behind each answer of the control server.
    answer: time === undefined ? answer : answer.replace(/\n$/, ""),
    status: Number(status),
  };
}

/** Words of a command: quotes only around whole words. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);
}

/** An answer with what differs from run to run made the same: places, times, counts. */
export function normalised(answer: string, prefix: string): string {
  return answer
    .replaceAll(prefix, "PREFIX")
    .replaceAll(/logs\/(\d+_)+add_/g, "logs/add_")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replaceAll(/^Date: .*$/gm, "Date: TIME")
    .replaceAll(/"(checks|fails|requests|downtime)":\d+/g, '"$1":N');
}
