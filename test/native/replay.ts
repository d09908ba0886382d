/** Operations that a worker with the native core and core.wasm in Node carry out alike; each tells what came of it in a line. */

import { patternParts } from "../../core-wasm/binding/compile/numbers.js";
import type { Core } from "../../core-wasm/binding/core.js";
import type {
  ChosenPeer,
  Decision,
  FilledErrorPage,
  FilledHeaderChange,
  RequestInput,
} from "../../core-wasm/binding/decision.js";
import { CoreError } from "../../core-wasm/binding/errors.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import type { HostPattern, PeerState } from "../../core-wasm/binding/source.js";

/** Text that is kept as UTF-8, as the bytes that it has there, one character each. */
const utf8 = (text: string) => Buffer.from(text, "utf8").toString("latin1");

type Field = string | number | boolean | undefined;

/** Fields as the worker writes them. Text is byte strings. */
function line(...fields: Field[]): string {
  return fields
    .map((field) => String(field ?? "").replaceAll(/[^\w./:-]/g, (char) => `%${hex(char.charCodeAt(0))}`))
    .join("|");
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, "0");
}

function told(error: unknown): string {
  if (!(error instanceof CoreError)) throw error;
  return line("error", error.message.slice(error.message.lastIndexOf(": ") + 2));
}

function changeText(change: FilledHeaderChange): string {
  const always = change.op === "add-response" ? change.always : "nil";
  return [change.op, "name" in change ? change.name : "", "value" in change ? change.value : "", always].join(",");
}

function pageText(page: FilledErrorPage): string {
  const codes = [...new Set(page.codes)].sort().join(" ");
  if (page.kind === "redirect") return [page.kind, page.status, codes, "", page.location, ""].join(",");
  const { contentType, body, headers } = page;
  return [page.kind, page.status ?? "", codes, contentType, body, headers.map(changeText).join(";")].join(",");
}

function idOf({ address, port }: { address: string; port: number }): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The decision in brief: without names, which a hostile image may have put together from any bytes. */
function briefLine(decision: Decision): string {
  const { action, headers } = decision;
  const changes = headers.map(changeText).join(";");
  if (action === "proxy") return line(action, "", decision.peer.port, decision.target, changes);
  const text = action === "redirect" ? decision.location : decision.body;
  return line(action, decision.status, "", text, changes);
}

function decisionLine(decision: Decision): string {
  const proxy = decision.action === "proxy" ? decision : undefined;
  const answer = decision.action === "return" ? decision : undefined;
  const { origin } = decision;
  const from = decision.action === "redirect" ? undefined : decision;
  return line(
    decision.action,
    decision.action === "proxy" ? undefined : decision.status,
    from?.upstreamKey && utf8(from.upstreamKey),
    from?.upstream && utf8(from.upstream),
    proxy && idOf(proxy.peer),
    ...[proxy?.peer.token, proxy?.peer.position, from?.hash, proxy?.peer.session],
    `${proxy?.session?.isNew ? 1 : 0}${answer?.busy ? 1 : 0}`,
    decision.action === "redirect" ? decision.location : (proxy?.target ?? answer?.body),
    answer?.contentType,
    decision.headers.map(changeText).join(";"),
    (from?.errorPages ?? []).map(pageText).join(";"),
    origin && utf8(`${origin.resource} ${origin.host} ${origin.path}`),
  );
}

/** A request with the names of the headers that were asked for, in order. */
function watched(request: RequestInput): { request: RequestInput; asked: Map<string, string> } {
  const asked = new Map<string, string>();
  const header = (name: string) => {
    const value = request.header(name);
    if (value !== undefined) asked.set(name, value);
    return value;
  };
  return { request: { ...request, header }, asked };
}

/** Carries operations out with core.wasm, notes what came of them, and writes them down for a worker. */
export class Replay {
  readonly #core: Core;
  #table: RouteTable;
  #parts: Buffer[] = [];
  #lines: string[] = [];

  constructor(core: Core) {
    this.#core = core;
    this.#table = new RouteTable(core);
    this.#note("N", [], () => "ok");
  }

  /** The operations so far for the worker, and the lines that they gave here; begins anew. */
  take(): { operations: Buffer; lines: string[] } {
    const taken = { operations: Buffer.concat(this.#parts), lines: this.#lines };
    this.#parts = [];
    this.#lines = [];
    return taken;
  }

  free(): void {
    this.#table.free();
  }

  #write(operation: string, fields: readonly (string | Uint8Array)[]): void {
    this.#parts.push(Buffer.from([operation.charCodeAt(0), fields.length]));
    for (const field of fields) {
      const bytes = typeof field === "string" ? Buffer.from(field, "latin1") : field;
      const length = Buffer.alloc(4);
      length.writeUInt32LE(bytes.length);
      this.#parts.push(length, Buffer.from(bytes));
    }
  }

  #note(operation: string, fields: readonly (string | Uint8Array)[], act: () => unknown): boolean {
    this.#write(operation, fields);
    try {
      const answer = act();
      this.#lines.push(typeof answer === "string" ? answer : "ok");
      return true;
    } catch (error) {
      this.#lines.push(told(error));
      return false;
    }
  }

  reset(): void {
    this.#table.free();
    this.#table = new RouteTable(this.#core);
    this.#note("N", [], () => "ok");
  }

  /** False for an image that is refused. */
  loadShard(image: Uint8Array): boolean {
    return this.#note("S", [image], () => this.#table.loadHost(image));
  }

  removeShard(pattern: HostPattern): void {
    const { kind, host } = patternParts(pattern);
    this.#note("s", [String(kind), utf8(host)], () => this.#table.removeHost(pattern));
  }

  loadPeers(image: Uint8Array): boolean {
    return this.#note("P", [image], () => this.#table.loadPeers(image));
  }

  removePeers(key: string): void {
    this.#note("p", [utf8(key)], () => this.#table.removePeers(key));
  }

  peerState(key: string, peer: { address: string; port: number }, state: PeerState, now: number): void {
    const fields = [utf8(key), idOf(peer), state, String(now)];
    this.#note("H", fields, () => this.#table.setPeerState(key, peer, state, now));
  }

  decide(input: RequestInput, random: number, now: number, brief = false): Decision {
    const { request, asked } = watched(input);
    const decision = this.#table.decide(request, random, now);
    const { host, target, scheme, clientAddress, clientPort, method, protocol } = input;
    this.#write(brief ? "r" : "R", [
      ...[host, target, scheme === "https" ? "1" : "0", String(random), String(now)],
      ...[clientAddress, String(clientPort), method, protocol],
      ...[...asked].flatMap(([name, value]) => [utf8(name), value]),
    ]);
    this.#lines.push(brief ? briefLine(decision) : decisionLine(decision));
    return decision;
  }

  pickPeer(key: string, hash: number | undefined, tried: ChosenPeer[], random: number, now: number) {
    const picked = this.#table.pickPeer(key, { hash, tried }, random, now);
    const fields = [
      utf8(key),
      String(hash ?? ""),
      String(random),
      String(now),
      ...tried.map(({ token }) => String(token)),
    ];
    this.#note("K", fields, () => {
      if (picked === undefined) return "none";
      if (picked === "busy") return "busy";
      return line(idOf(picked), picked.token, picked.position, picked.session);
    });
    return typeof picked === "object" ? picked : undefined;
  }

  peerDone(peer: ChosenPeer, failed: boolean, now: number): void {
    const fields = [String(peer.token), failed ? "1" : "0", String(now)];
    this.#note("D", fields, () => this.#table.peerDone(peer, failed, now));
  }

  /** Compiles a pattern. */
  regex(pattern: string): void {
    this.#note("X", [pattern], () => {
      const { exports } = this.#core;
      const at = this.#core.place(Buffer.from(pattern, "latin1"));
      const result = exports.alloc(16);
      const code = exports.regex_compile(at, pattern.length, 0, result);
      const word = (offset: number) => new DataView(exports.memory.buffer).getUint32(result + offset, true);
      const answer = line(code, code === -1 ? word(12) : 0);
      for (const block of [at, result, ...(code === 0 ? [word(0)] : [])]) exports.free(block);
      return answer;
    });
  }

  /** Something that only the worker does, with the line that it must answer. */
  only(operation: string, fields: readonly (string | Uint8Array)[], expected: string): void {
    this.#note(operation, fields, () => expected);
  }

  peersOf(key: string): void {
    this.#note("O", [utf8(key)], () =>
      this.#table
        .peersOf(key)
        .map((peer) => line(peer.address, peer.port, peer.weight, peer.draining, peer.state, peer.conns, peer.out))
        .join(";"),
    );
  }
}
