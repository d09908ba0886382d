import { BUNDLE_KIND, readBundle } from "../../core-wasm/binding/bundle.js";
import {
  ACTION,
  type Context,
  GUARD,
  HASH,
  MARKS,
  ORIGIN,
  PEER,
  PEERS,
  POSITION,
  RENDERED,
  ROUTE,
  SETTINGS,
  SETTINGS_LENGTH,
  SHARD,
  STATUS,
  TEXT,
  TEXT_LENGTH,
  TYPE,
  TYPE_LENGTH,
} from "../../core-wasm/binding/context.js";
import type { Core } from "../../core-wasm/binding/core.js";
import type { RequestInput } from "../../core-wasm/binding/decision.js";
import { shardPattern } from "../../core-wasm/binding/load-bundle.js";
import { IMAGE_SIZE, readPeer } from "../../core-wasm/binding/peer-set.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";

/** A request of the suite, as a line has it. All texts are byte strings. */
export interface SuiteRequest {
  method: string;
  scheme: "http" | "https";
  host: string;
  target: string;
  protocol: string;
  headers: [name: string, value: string][];
  client: [address: string, port: number];
  random: number;
  now: number;
}

const ACTIONS = ["", "proxy", "redirect", "return"];
const BY = ["none", "route", "guard", "unmatched"];
const BUSY = 1;
const HASHED = 2;
const NEW_SESSION = 4;
/** Tags whose values are templates: headers that are set or added, error pages and their headers. */
const RENDERED_TAGS = [1, 3, 7, 8, 9];
const TAG = 0x7fff;
const SETTING_HEADER = 8;

/** A byte string as README.md says it is written. */
function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]|[^\x20-\x7e]/g, (char) =>
    char === '"' || char === "\\" ? `\\${char}` : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )}"`;
}

const utf8 = (text: string) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");

/** Decides requests over a bundle and tells each decision as README.md says; reads the words of the context itself. */
export class Decider {
  readonly #core: Core;
  readonly #table: RouteTable;

  /** Throws CoreError for a bundle that is not sound. */
  constructor(core: Core, bundle: Uint8Array) {
    this.#core = core;
    this.#table = new RouteTable(core);
    for (const { kind, content } of readBundle(bundle)) {
      if (kind === BUNDLE_KIND.shard) this.#table.loadHost(content);
      if (kind === BUNDLE_KIND.peerSet) this.#table.loadPeers(content);
    }
  }

  free(): void {
    this.#table.free();
  }

  decide({ method, scheme, host, target, protocol, headers, client, random, now }: SuiteRequest): string {
    const values = new Map(headers);
    const [clientAddress, clientPort] = client;
    const header = (name: string) => values.get(utf8(name));
    const input: RequestInput = { method, scheme, host, target, protocol, clientAddress, clientPort, header };
    const { context } = this.#table;
    context.setTime(now);
    if (context.decide(input, random) < 0) return TOO_LONG;
    const line = this.#line(context);
    const token = this.#token(context);
    if (token !== undefined) this.#core.exports.peer_done(context.pointer, token | 0, 0);
    return line;
  }

  #token(context: Context): number | undefined {
    if (ACTIONS[context.word(ACTION)] !== "proxy") return undefined;
    const image = context.word(PEERS);
    const word = (at: number) => context.words[at >> 2] >>> 0;
    return word(((image + word(image + IMAGE_SIZE) + 3) & ~3) + context.word(PEER) * 4);
  }

  #line(context: Context): string {
    const { buffer } = context.bytes;
    const view = new DataView(buffer);
    const action = ACTIONS[context.word(ACTION)];
    const proxy = action === "proxy";
    const marks = context.word(MARKS);
    const by = BY[context.word(ORIGIN)];
    const shard = context.word(SHARD);
    const set = action === "redirect" ? 0 : context.word(PEERS);
    const peer = proxy ? readPeer(view, set, context.word(PEER)) : undefined;
    const type = action === "return" && context.word(TYPE_LENGTH) > 0;
    const text = action === "return" && !type ? "" : context.latin1(context.word(TEXT), context.word(TEXT_LENGTH));
    const own = (text: string | undefined) => (text === undefined ? null : quoted(text));
    const key = set ? context.latin1(set + view.getUint32(set + 64, true), view.getUint32(set + 68, true)) : undefined;
    const rule = by === "route" ? context.word(ROUTE) : by === "guard" ? context.word(GUARD) : null;
    const fields: Record<string, unknown> = {
      action: quoted(action),
      status: proxy ? 0 : context.word(STATUS),
      shard: own(shard ? utf8(shardPattern(new Uint8Array(buffer, shard))) : undefined),
      by: quoted(by),
      rule,
      upstream: own(key),
      peer: own(peer?.id),
      index: proxy ? context.word(PEER) : null,
      position: proxy ? context.word(POSITION) : null,
      hash: marks & HASHED && (proxy || marks & BUSY) ? context.word(HASH) : null,
      session: own(peer?.session),
      new: peer?.session !== undefined && (marks & NEW_SESSION) !== 0,
      busy: action === "return" && (marks & BUSY) !== 0,
      text: quoted(text),
      type: own(type ? context.latin1(context.word(TYPE), context.word(TYPE_LENGTH)) : undefined),
      settings: `[${this.#settings(context).join(",")}]`,
    };
    return lineOf(fields);
  }

  #settings(context: Context): string[] {
    const settings: string[] = [];
    const start = context.word(SETTINGS);
    const end = start + context.word(SETTINGS_LENGTH);
    const word = (at: number) => context.words[at >> 2] >>> 0;
    for (let at = start; at < end; at += SETTING_HEADER + word(at + 4)) {
      const tag = word(at) & TAG;
      const size = word(at + 4);
      const name = size >= 4 ? context.latin1(at + SETTING_HEADER + 4, word(at + SETTING_HEADER)) : "";
      const render = RENDERED_TAGS.includes(tag);
      const length = render ? this.#core.exports.render_setting(context.pointer, settings.length) : 0;
      const value = length > 0 ? context.latin1(context.word(RENDERED), length) : "";
      settings.push(`[${tag},${word(at) >>> 16},${quoted(name)},${quoted(value)}]`);
    }
    return settings;
  }
}

function lineOf(fields: Record<string, unknown>): string {
  return `{${Object.entries(fields)
    .map(([name, value]) => `"${name}":${value}`)
    .join(",")}}`;
}

const TOO_LONG = lineOf({
  ...{ action: '"return"', status: 414, shard: null, by: '"none"', rule: null, upstream: null, peer: null },
  ...{ index: null, position: null, hash: null, session: null, new: false, busy: false, text: '""', type: null },
  settings: "[]",
});
