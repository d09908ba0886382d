import { type IncomingMessage, type ServerResponse, request as send } from "node:http";
import { request as sendTls } from "node:https";
import type { Directive } from "./configuration-text.js";
import type { Place } from "./posted-backends.js";
import { escapePath } from "./request-target.js";
import { addedHeaders, isRewritten } from "./run-location.js";
import type { Variables } from "./variables.js";

/** Headers of a peer that NGINX keeps to itself. */
const HIDDEN = [
  "date",
  "server",
  "x-pad",
  "x-accel-expires",
  "x-accel-redirect",
  "x-accel-limit-rate",
  "x-accel-buffering",
  "x-accel-charset",
];
/** Of one connection only. */
const OWN = new Set(["connection", "keep-alive", "transfer-encoding", "proxy-connection", "upgrade", "te"]);

/** How a request is passed on. */
export interface Passing {
  /** `http` or `https`. */
  scheme: string;
  /** In the order in which they are tried. */
  peers: readonly Place[];
  /** `$proxy_host`. */
  host: string;
  /** Path and query instead of those of the request, where `proxy_pass` has them. */
  target?: string;
  directives: readonly Directive[];
}

/** Passes a request on; the status that the client got. */
export async function passRequest(
  request: IncomingMessage,
  response: ServerResponse,
  variables: Variables,
  passing: Passing,
): Promise<number> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  const target = passing.target ?? targetOf(variables);
  const headers = headersFor(request, variables, passing, body.length);
  for (const peer of passing.peers) {
    const answer = await attempt(peer, passing.scheme, request.method ?? "GET", target, headers, body);
    if (answer === undefined) continue;
    response.writeHead(answer.statusCode ?? 502, answerHeaders(answer, variables, passing.directives));
    answer.pipe(response);
    await new Promise((resolve) => response.on("close", resolve));
    return answer.statusCode ?? 502;
  }
  const status = passing.peers.length === 0 ? 503 : 502;
  response.writeHead(status, { "Content-Type": "text/html" });
  response.end(`${status}\n`);
  return status;
}

/** As it came, unless a rewrite has changed the path. */
function targetOf(variables: Variables): string {
  const { target } = variables;
  if (!isRewritten(variables)) return target.request;
  const path = target.wasEncoded || /[ ]/.test(variables.path) ? escapePath(variables.path) : variables.path;
  return variables.query === "" ? path : `${path}?${variables.query}`;
}

function attempt(
  { address, port }: Place,
  scheme: string,
  method: string,
  path: string,
  headers: string[],
  body: Buffer,
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve) => {
    const options = {
      host: address,
      port,
      method,
      path,
      headers,
      agent: false,
      rejectUnauthorized: false,
      setHost: false,
    };
    const sent = (scheme === "https" ? sendTls : send)(options, resolve);
    sent.on("error", () => resolve(undefined));
    sent.end(body);
  });
}

function headersFor(
  request: IncomingMessage,
  variables: Variables,
  { host, directives }: Passing,
  length: number,
): string[] {
  const set = new Map<string, [name: string, value: string]>([
    ["host", ["Host", host]],
    ["connection", ["Connection", "close"]],
  ]);
  for (const { name, args } of directives) {
    if (!/^(proxy|grpc)_set_header$/.test(name)) continue;
    const value = variables.fill(args[1]);
    set.set(args[0].toLowerCase(), [args[0], value]);
  }
  // An upgrade is not passed on here.
  set.set("connection", ["Connection", "close"]);
  set.delete("upgrade");
  const headers: string[] = [];
  for (const [name, value] of set.values()) if (value !== "") headers.push(name, value);
  const passes = !directives.some(({ name, args }) => name === "proxy_pass_request_headers" && args[0] === "off");
  for (let i = 0; passes && i < request.rawHeaders.length; i += 2) {
    const name = request.rawHeaders[i].toLowerCase();
    if (set.has(name) || OWN.has(name) || name === "content-length") continue;
    headers.push(request.rawHeaders[i], request.rawHeaders[i + 1]);
  }
  if (length > 0) headers.push("Content-Length", String(length));
  return headers;
}

function answerHeaders(answer: IncomingMessage, variables: Variables, directives: readonly Directive[]): string[] {
  const names = (suffix: string) =>
    directives.filter(({ name }) => name.endsWith(suffix)).map(({ args }) => args[0].toLowerCase());
  const passed = names("_pass_header");
  const hidden = new Set([...HIDDEN.filter((one) => !passed.includes(one)), ...names("_hide_header")]);
  const headers: string[] = [];
  for (let i = 0; i < answer.rawHeaders.length; i += 2) {
    const name = answer.rawHeaders[i].toLowerCase();
    if (!hidden.has(name) && !OWN.has(name)) headers.push(answer.rawHeaders[i], answer.rawHeaders[i + 1]);
  }
  for (const [name, value] of addedHeaders(directives, variables, answer.statusCode ?? 0)) headers.push(name, value);
  return headers;
}
