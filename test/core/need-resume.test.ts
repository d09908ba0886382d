import { describe, expect, it } from "vitest";
import type { HeaderChange, Template } from "../../core-wasm/binding/source.js";
import { makeRoutingTable, sharedCore } from "../support/core.js";
import { RawTable, WORDS } from "../support/raw-core.js";
import {
  answer,
  argument,
  cookie,
  equals,
  exact,
  header,
  hostRules,
  peers,
  prefix,
  regex,
  request,
  route,
} from "../support/rules.js";

const NEED = 1;
const E_POINTER = -10;
const E_STATE = -11;

/** A route that decides only if a header says so. */
function onHeader(path: ReturnType<typeof prefix>, name: string, value: string) {
  return route(path, undefined, {
    matches: [{ conditions: [equals(header(name), value)], outcome: answer(`${name} is ${value}`) }],
  });
}

function rawTable(...args: Parameters<RawTable["load"]>): RawTable {
  const raw = new RawTable(sharedCore);
  raw.load(...args);
  return raw;
}

describe("what is asked for", () => {
  it("is nothing where no condition and no template reads a header or a fact", () => {
    const conditions = [equals(argument("a"), "1"), equals({ kind: "variable", name: "scheme" }, "http")];
    const body: Template = (["host", "uri", "args", "request_uri", "https"] as const).map((name) => ({
      kind: "variable",
      name,
    }));
    const raw = rawTable([
      hostRules([
        route(prefix("/"), answer(...body), { matches: [{ conditions, outcome: answer("matched") }] }),
        onHeader(prefix("/other"), "x-other", "1"),
      ]),
    ]);
    expect(raw.decide("example.com", "/?a=1").rounds).toEqual([]);
    expect(raw.answer()).toBe("matched");
    expect(raw.decide("example.com", "/?a=2").rounds).toEqual([]);
    raw.free();
  });

  it("is what the candidate at hand looks at, and no header of another route", () => {
    const raw = rawTable([
      hostRules([
        onHeader(prefix("/a"), "x-a", "1"),
        onHeader(prefix("/b"), "x-b", "1"),
        route(prefix("/"), answer("rest")),
      ]),
    ]);
    expect(raw.decide("example.com", "/b", { "x-b": "1" }).rounds).toEqual([["x-b"]]);
    expect(raw.answer()).toBe("x-b is 1");
    expect(raw.decide("example.com", "/c").rounds).toEqual([]);
    raw.free();
  });

  it("is asked for once, however many candidates look at it", () => {
    const raw = rawTable([
      hostRules([
        onHeader(exact("/a/b"), "x-a", "1"),
        onHeader(regex("b$"), "x-b", "1"),
        onHeader(prefix("/a/b"), "x-a", "2"),
        onHeader(prefix("/a"), "x-b", "2"),
        route(prefix("/"), answer({ kind: "header", name: "x-a" }, { kind: "header", name: "x-c" })),
      ]),
    ]);
    const { rounds } = raw.decide("example.com", "/a/b", { "x-a": "left", "x-c": "right" });
    expect(rounds).toEqual([["x-a"], ["x-b"], ["x-c"]]);
    expect(raw.answer()).toBe("leftright");
    raw.free();
  });

  it("is asked for anew by the next request", () => {
    const raw = rawTable([hostRules([onHeader(prefix("/"), "x-a", "1")])]);
    expect(raw.decide("example.com", "/", { "x-a": "1" }).rounds).toEqual([["x-a"]]);
    expect(raw.decide("example.com", "/").rounds).toEqual([["x-a"]]);
    expect(raw.word(WORDS.status)).toBe(404);
    raw.free();
  });

  it("is each fact of the connection, once", () => {
    const names = ["remote_addr", "remote_port", "request_method", "server_protocol", "http2", "request"] as const;
    const body = names.flatMap((name): Template => [{ kind: "variable", name }, "|"]);
    const raw = rawTable([hostRules([route(prefix("/"), answer(...body))])]);
    const facts = { address: "192.0.2.7", port: "4000", method: "PUT", protocol: "HTTP/2.0" };
    expect(raw.decide("example.com", "/a?b", facts).rounds).toEqual([["address", "port", "method", "protocol"]]);
    expect(raw.answer()).toBe("192.0.2.7|4000|PUT|HTTP/2.0|h2|PUT /a?b HTTP/2.0|");
    raw.free();
  });

  it("is the cookie header where a cookie is read", () => {
    const raw = rawTable([hostRules([route(prefix("/"), answer(cookie("a"), cookie("b")))])]);
    expect(raw.decide("example.com", "/", { cookie: "b=2; a=1" }).rounds).toEqual([["cookie"]]);
    expect(raw.answer()).toBe("12");
    raw.free();
  });

  it("is what the hash key reads, once the route has decided", () => {
    const key: Template = [
      { kind: "header", name: "x-user" },
      { kind: "variable", name: "remote_addr" },
    ];
    const matches = [{ conditions: [equals(header("x-a"), "1")], outcome: answer("own") }];
    const raw = rawTable(
      [hostRules([route(prefix("/"), { kind: "proxy", upstream: "u" }, { matches })])],
      [peers("u", [1, 2, 3], { kind: "ring", key })],
    );
    const values = { "x-user": "ann", address: "192.0.2.7" };
    expect(raw.decide("example.com", "/", values).rounds).toEqual([["x-a"], ["address", "x-user"]]);
    expect(raw.word(WORDS.action)).toBe(1);
    const chosen = raw.word(WORDS.peer);
    raw.decide("example.com", "/other", values);
    expect(raw.word(WORDS.peer)).toBe(chosen);
    raw.free();
  });

  it("is not asked for by a guard that is not reached", () => {
    const guard = (name: string) => ({
      resource: `VirtualServer/default/${name}`,
      match: { conditions: [equals(header(name), "1")], outcome: answer(name) },
    });
    const raw = rawTable([hostRules([route(prefix("/"), answer("route"))], { guards: [guard("x-a"), guard("x-b")] })]);
    expect(raw.decide("example.com", "/", { "x-a": "1" }).rounds).toEqual([["x-a"]]);
    expect(raw.decide("example.com", "/", {}).rounds).toEqual([["x-a"], ["x-b"]]);
    raw.free();
  });
});

describe("values", () => {
  it("of the rules of a host are not taken for those of the default backend", () => {
    const raw = rawTable([
      hostRules([onHeader(prefix("/"), "x-first", "1")]),
      {
        pattern: { kind: "default" },
        guards: [],
        routes: [],
        unmatched: { resource: "d", outcome: answer(header("x-second")) },
      },
    ]);
    const { rounds } = raw.decide("example.com", "/", { "x-first": "first", "x-second": "second" });
    expect(rounds).toEqual([["x-first"], ["x-second"]]);
    expect(raw.answer()).toBe("second");
    raw.free();
  });

  it("stay right when a later candidate asks for more", () => {
    const table = makeRoutingTable();
    table.setHost(
      hostRules([
        onHeader(prefix("/a"), "x-first", "no"),
        route(prefix("/"), answer(header("x-first"), "|", header("x-second"))),
      ]),
    );
    const headers = { "x-first": "the first value", "x-second": "another" };
    expect(table.decide(request("/a", { headers }), 0)).toMatchObject({ body: "the first value|another" });
    table.free();
  });

  it("stay right when those of a later round need more room than there is", () => {
    const table = makeRoutingTable();
    table.setHost(
      hostRules([
        onHeader(prefix("/a"), "x-first", "no"),
        route(prefix("/"), answer(header("x-first"), "|", header("x-second"), header("x-third"))),
      ]),
    );
    const headers = { "x-first": "f".repeat(9000), "x-second": "s".repeat(9000), "x-third": "t".repeat(50000) };
    const body = `${headers["x-first"]}|${headers["x-second"]}${headers["x-third"]}`;
    expect(table.decide(request("/a", { headers }), 0)).toMatchObject({ body });
    expect(table.decide(request("/a", { headers }), 0)).toMatchObject({ body });
    table.free();
  });

  it("that are long arrive byte for byte, whatever bytes they have", () => {
    const table = makeRoutingTable();
    table.setHost(hostRules([route(prefix("/"), answer(header("x-first"), "|", header("x-second")))]));
    const every = Array.from({ length: 512 }, (_, i) => String.fromCharCode(i & 255)).join("");
    for (const value of ["a".repeat(1000), `${"a".repeat(999)}\xff`, `\x80${"a".repeat(999)}`, every]) {
      const headers = { "x-first": value, "x-second": "second" };
      expect(table.decide(request("/", { headers }), 0)).toMatchObject({ body: `${value}|second` });
    }
    table.free();
  });

  it("of a header change stay right when the hash key reads another header", () => {
    const table = makeRoutingTable();
    const headers: HeaderChange[] = [{ op: "set-request", name: "X-Copy", value: [header("x-first")] }];
    table.setPeers(peers("u", [1, 2, 3], { kind: "ring", key: [header("x-user")] }));
    table.setHost(hostRules([route(prefix("/"), { kind: "proxy", upstream: "u", headers })]));
    const decision = table.decide(request("/", { headers: { "x-first": "first", "x-user": "ann" } }), 0);
    expect(decision.headers).toEqual([{ op: "set-request", name: "X-Copy", value: "first" }]);
    table.free();
  });

  it("of a request before are gone after 2^32 requests of one context", () => {
    const raw = rawTable([hostRules([onHeader(prefix("/"), "x-a", "1"), onHeader(prefix("/b"), "x-b", "1")])]);
    raw.decide("example.com", "/", { "x-a": "1" });
    // The number of the request, which marks the values that are its own, is private; its place is in table/context.ts.
    raw.setWord(raw.context + 552, 0xffffffff);
    expect(raw.decide("example.com", "/b").rounds).toEqual([["x-b"], ["x-a"]]);
    expect(raw.word(WORDS.status)).toBe(404);
    raw.free();
  });

  it("longer than the memory are refused, and the request can still be decided", () => {
    const raw = rawTable([hostRules([onHeader(prefix("/"), "x-a", "1")])]);
    expect(raw.route("example.com", "/")).toBe(NEED);
    const need = raw.word(WORDS.needs);
    for (const [at, length] of [
      [0xfffffff0, 32],
      [16, 0x7fffffff],
    ]) {
      raw.setWord(need + 4, at);
      raw.setWord(need + 8, length);
      expect(raw.exports.resume(raw.context)).toBe(E_POINTER);
    }
    raw.setWord(need + 8, -1);
    expect(raw.exports.resume(raw.context)).toBe(0);
    expect(raw.word(WORDS.status)).toBe(404);
    raw.free();
  });
});

describe("a wrong call is answered with a status", () => {
  it("when resume has nothing to go on with", () => {
    const raw = rawTable([hostRules([onHeader(prefix("/"), "x-a", "1")])]);
    expect(raw.exports.resume(raw.context)).toBe(E_STATE);
    raw.decide("example.com", "/");
    expect(raw.exports.resume(raw.context)).toBe(E_STATE);
    raw.route("example.com", "/");
    raw.exports.release_decision(raw.context);
    expect(raw.exports.resume(raw.context)).toBe(E_STATE);
    raw.free();
  });

  it("when host and target do not fit the input", () => {
    const raw = rawTable([hostRules([route(prefix("/"), answer("ok"))])]);
    for (const [host, target] of [
      [4097, 0],
      [0, 4097],
      [4096, 1],
      [0xffffffff, 2],
      [2, 0xffffffff],
    ]) {
      expect(raw.exports.route(raw.context, host, target, 0, 0)).toBe(E_POINTER);
    }
    raw.free();
  });

  it("when the context is none, or is none any more", () => {
    const raw = rawTable([hostRules([route(prefix("/"), answer("ok"))])]);
    const { exports, context, table } = raw;
    const calls = (pointer: number) => [
      exports.route(pointer, 0, 1, 0, 0),
      exports.resume(pointer),
      exports.release_decision(pointer),
      exports.render_setting(pointer, 0),
    ];
    for (const pointer of [0, 8, table, context + 4, context + 16, 0x7ffffff0, 0xfffffff0, 0xffffffff]) {
      expect(calls(pointer), `${pointer}`).toEqual([E_POINTER, E_POINTER, E_POINTER, E_POINTER]);
      expect(exports.context_free(pointer)).toBe(E_POINTER);
      expect(exports.context_trace(pointer, 1)).toBe(E_POINTER);
    }
    expect(exports.context_free(context)).toBe(0);
    expect(calls(context)).toEqual([E_POINTER, E_POINTER, E_POINTER, E_POINTER]);
    expect(exports.context_free(context)).toBe(E_POINTER);
    raw.free();
  });

  it("when the table is none, or is none any more", () => {
    const raw = rawTable([hostRules([route(prefix("/"), answer("ok"))])]);
    const { exports, context, table } = raw;
    const calls = (pointer: number) => [
      exports.table_generation(pointer),
      exports.shard_load(pointer, 0, 0),
      exports.shard_remove(pointer, 0, 0, 0),
      exports.peers_load(pointer, 0, 0),
      exports.peers_remove(pointer, 0, 0),
      exports.table_free(pointer),
    ];
    for (const pointer of [0, context, table + 16, 0x7ffffff0, 0xffffffff]) {
      expect(new Set(calls(pointer)), `${pointer}`).toEqual(new Set([E_POINTER]));
      expect(exports.context_new(pointer, 16, 16)).toBe(0);
      expect(exports.peers_find(pointer, 0, 0)).toBe(0);
    }
    raw.free();
    expect(new Set(calls(table))).toEqual(new Set([E_POINTER]));
  });

  it("when bytes are not in the memory", () => {
    const raw = rawTable([]);
    const { exports, table } = raw;
    const outside = exports.memory.buffer.byteLength;
    for (const [at, length] of [
      [outside, 1],
      [outside - 4, 5],
      [0, 0xffffffff],
      [0xfffffffc, 8],
    ]) {
      const statuses = [
        exports.shard_validate(at, length),
        exports.shard_validate(at, length, 1),
        exports.regex_compile(at, length, 0, 0),
        exports.shard_load(table, at, length),
        exports.shard_remove(table, 0, at, length),
        exports.peers_load(table, at, length),
        exports.peers_remove(table, at, length),
        exports.regex_compile(0, 0, 0, outside - 12),
      ];
      expect(new Set(statuses)).toEqual(new Set([E_POINTER]));
      expect(exports.peers_find(table, at, length)).toBe(0);
    }
    raw.free();
  });

  it("when a setting is asked for that the decision does not have", () => {
    const headers: HeaderChange[] = [{ op: "add-response", name: "X-A", value: ["a"], always: true }];
    const raw = rawTable([hostRules([route(prefix("/"), { ...answer("ok"), headers })])]);
    expect(raw.exports.render_setting(raw.context, 0)).toBe(E_STATE);
    raw.decide("example.com", "/");
    expect(raw.exports.render_setting(raw.context, 0)).toBe(1);
    expect(raw.exports.render_setting(raw.context, 1)).toBe(E_STATE);
    expect(raw.exports.render_setting(raw.context, 0xffffffff)).toBe(E_STATE);
    raw.exports.release_decision(raw.context);
    expect(raw.exports.render_setting(raw.context, 0)).toBe(E_STATE);
    raw.free();
  });

  it("when a pattern that does not exist is to be removed", () => {
    const raw = rawTable([{ ...hostRules([route(prefix("/"), answer("any"))]), pattern: { kind: "any" } }]);
    expect(raw.exports.shard_remove(raw.table, 5, 0, 0)).toBeLessThan(0);
    raw.decide("example.com", "/");
    expect(raw.answer()).toBe("any");
    raw.free();
  });
});
