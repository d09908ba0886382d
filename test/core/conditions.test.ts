import { describe, expect, it } from "vitest";
import type { Condition, ConditionTest, ValueSource, VariableName } from "../../core-wasm/binding/source.js";
import { makeRoutingTable } from "../support/core.js";
import { Random } from "../support/random.js";
import {
  answer,
  argument,
  cookie,
  equals,
  header,
  hostRules,
  peers,
  prefix,
  type RequestParts,
  request,
  route,
} from "../support/rules.js";
import { argumentOf, cookieOf } from "./reference/values.js";

/** Whether all conditions hold for a request. */
function hold(conditions: Condition[], target: string, parts: RequestParts = {}): boolean {
  const table = makeRoutingTable();
  table.setHost(hostRules([route(prefix("/"), answer("no"), { matches: [{ conditions, outcome: answer("yes") }] })]));
  const decision = table.decide(request(target, parts), 0);
  table.free();
  return decision.action === "return" && decision.body === "yes";
}

const matches = (pattern: string, ignoreCase = false): ConditionTest => ({ kind: "regex", pattern, ignoreCase });
const EMPTY: ConditionTest = { kind: "empty" };
const variable = (name: VariableName): ValueSource => ({ kind: "variable", name });

interface SourceCase {
  name: string;
  source: ValueSource;
  /** A request whose value is `Green-7`, and one whose value is `other`; absent where that can be. */
  green: [string, RequestParts];
  other: [string, RequestParts];
  absent?: [string, RequestParts];
}

const SOURCES: SourceCase[] = [
  {
    name: "a header",
    source: header("X-Color"),
    green: ["/", { headers: { "x-color": "Green-7" } }],
    other: ["/", { headers: { "x-color": "other" } }],
    absent: ["/", { headers: { "x-colors": "Green-7" } }],
  },
  {
    name: "a cookie",
    source: cookie("my-Color"),
    green: ["/", { headers: { cookie: "a=b; My-color=Green-7; my-color=other" } }],
    other: ["/", { headers: { cookie: "my-color=other" } }],
    absent: ["/", { headers: { cookie: "color=Green-7" } }],
  },
  {
    name: "an argument",
    source: argument("Color"),
    green: ["/?a=b&cOLOR=Green-7&color=other", {}],
    other: ["/?color=other", {}],
    absent: ["/?colors=Green-7", {}],
  },
  { name: "$args", source: variable("args"), green: ["/?Green-7", {}], other: ["/?other", {}], absent: ["/", {}] },
  {
    name: "$query_string",
    source: variable("query_string"),
    green: ["/?Green-7", {}],
    other: ["/?other", {}],
    absent: ["/?", {}],
  },
  {
    name: "$remote_addr",
    source: variable("remote_addr"),
    green: ["/", { clientAddress: "Green-7" }],
    other: ["/", { clientAddress: "other" }],
  },
  {
    name: "$request_method",
    source: variable("request_method"),
    green: ["/", { method: "Green-7" }],
    other: ["/", { method: "other" }],
  },
  {
    name: "$server_protocol",
    source: variable("server_protocol"),
    green: ["/", { protocol: "Green-7" }],
    other: ["/", { protocol: "other" }],
  },
];

describe.each(SOURCES)("a condition on $name", ({ source, green, other, absent }) => {
  const tests: [string, ConditionTest, boolean[]][] = [
    ["equal text, letter case aside", { kind: "equals", value: "gREEN-7" }, [true, false, false]],
    ["equal text only in full", { kind: "equals", value: "Green-" }, [false, false, false]],
    ["the empty text", { kind: "equals", value: "" }, [false, false, true]],
    ["absence", EMPTY, [false, false, true]],
    ["a regex", matches("^Green-[0-9]$"), [true, false, false]],
    ["a regex with regard to letter case", matches("green"), [false, false, false]],
    ["a regex without regard to letter case", matches("gREEN", true), [true, false, false]],
    ["a regex that takes the empty text", matches("^$"), [false, false, true]],
  ];

  it.each(tests)("holds for %s", (_, test, expected) => {
    const requests = [green, other, ...(absent ? [absent] : [])];
    const actual = requests.map(([target, parts]) => hold([{ source, test, negated: false }], target, parts));
    expect(actual).toEqual(expected.slice(0, requests.length));
  });

  it.each(tests)("is turned around by negation for %s", (_, test, expected) => {
    const requests = [green, other, ...(absent ? [absent] : [])];
    const actual = requests.map(([target, parts]) => hold([{ source, test, negated: true }], target, parts));
    expect(actual).toEqual(expected.slice(0, requests.length).map((value) => !value));
  });
});

describe("a condition", () => {
  it("compares the variables of the connection and the target", () => {
    const cases: [VariableName, string, string, RequestParts][] = [
      ["host", "example.com", "/", { host: "EXAMPLE.com.:80" }],
      ["scheme", "https", "/", { scheme: "https" }],
      ["scheme", "http", "/", {}],
      ["https", "on", "/", { scheme: "https" }],
      ["http2", "h2", "/", { protocol: "HTTP/2.0" }],
      ["remote_port", "40123", "/", {}],
      ["uri", "/a/b c", "/a//b%20c?d", {}],
      ["request_uri", "/a//b%20c?d#e", "/a//b%20c?d#e", {}],
      ["request_uri", "/a?b", "http://example.com/a?b", {}],
      ["request", "GET /a//b%20c?d HTTP/1.1", "/a//b%20c?d", {}],
      ["request", "PROPFIND / HTTP/2.0", "/", { method: "PROPFIND", protocol: "HTTP/2.0" }],
    ];
    const wrong = cases.filter(([name, value, target, parts]) => {
      return (
        !hold([equals(variable(name), value)], target, parts) ||
        hold([equals(variable(name), `${value}x`)], target, parts)
      );
    });
    expect(wrong).toEqual([]);
  });

  it("finds $https and $http2 empty where they do not apply", () => {
    for (const name of ["https", "http2"] as const) {
      expect(hold([{ source: variable(name), test: EMPTY, negated: false }], "/")).toBe(true);
    }
  });

  it("compares a request line of every length up to the longest target", () => {
    const target = `/${"a".repeat(60_000)}`;
    expect(hold([equals(variable("request"), `GET ${target} HTTP/1.1`)], target)).toBe(true);
  });

  it("folds the case of ASCII letters only", () => {
    const latin = (text: string) => Buffer.from(text, "utf8").toString("latin1");
    const with_ = (value: string) => ({ headers: { h: value } });
    expect(hold([equals(header("h"), "É")], "/", with_(latin("É")))).toBe(true);
    expect(hold([equals(header("h"), "É")], "/", with_(latin("é")))).toBe(false);
    expect(hold([equals(header("h"), "@[`{")], "/", with_("@[`{"))).toBe(true);
    expect(hold([equals(header("h"), "@[")], "/", with_("`{"))).toBe(false);
  });

  it("looks at arguments as they stand in the request, not decoded", () => {
    expect(hold([equals(argument("a"), "%31")], "/?a=%31")).toBe(true);
    expect(hold([equals(argument("a"), "1")], "/?%61=1")).toBe(false);
  });

  it("takes no part of a fragment for an argument", () => {
    expect(hold([equals(argument("a"), "1")], "/?b#&a=1")).toBe(false);
    expect(hold([equals(argument("a"), "1")], "/?a=1#x")).toBe(true);
  });
});

describe("a match", () => {
  it("needs all of its conditions", () => {
    const three = [equals(header("a"), "1"), equals(cookie("b"), "2"), equals(argument("c"), "3")];
    const all = { headers: { a: "1", cookie: "b=2" } };
    expect(hold(three, "/?c=3", all)).toBe(true);
    expect(hold(three, "/?c=4", all)).toBe(false);
    expect(hold(three, "/?c=3", { headers: { a: "1", cookie: "b=3" } })).toBe(false);
    expect(hold(three, "/?c=3", { headers: { cookie: "b=2" } })).toBe(false);
  });

  it("decides before those after it, and before the default", () => {
    const match = (name: string, ...conditions: Condition[]) => ({ conditions, outcome: answer(name) });
    const table = makeRoutingTable();
    table.setHost(
      hostRules([
        route(prefix("/"), answer("default"), {
          matches: [
            match("both", equals(argument("a"), "1"), equals(argument("b"), "1")),
            match("a", equals(argument("a"), "1")),
            match("again", equals(argument("a"), "1")),
            match("b", equals(argument("b"), "1")),
          ],
        }),
      ]),
    );
    const bodies = ["/?a=1&b=1", "/?a=1", "/?b=1", "/"].map((target) => table.decide(request(target), 0));
    expect(bodies).toMatchObject([{ body: "both" }, { body: "a" }, { body: "b" }, { body: "default" }]);
    table.free();
  });

  it("without conditions always decides", () => {
    expect(hold([], "/")).toBe(true);
  });

  it("of a guard decides before any path, and for targets that no route covers", () => {
    const guard = {
      resource: "g",
      match: { conditions: [equals(variable("scheme"), "http")], outcome: answer("guard") },
    };
    const table = makeRoutingTable();
    table.setHost(hostRules([route(prefix("/a"), answer("route"))], { guards: [guard] }));
    expect(table.decide(request("/a"), 0)).toMatchObject({ body: "guard" });
    expect(table.decide(request("/b"), 0)).toMatchObject({ body: "guard" });
    expect(table.decide(request("/a", { scheme: "https" }), 0)).toMatchObject({ body: "route" });
    expect(table.decide(request("a"), 0)).toMatchObject({ status: 400 });
    table.free();
  });
});

/** Texts of few characters, so that names, separators and their absence meet in every way. */
function randomText(random: Random, alphabet: string, longest: number): string {
  return random.picks([...alphabet], random.below(longest)).join("");
}

describe("values are found as NGINX finds them", () => {
  const values = makeRoutingTable();
  values.setPeers(peers("u", [1]));
  const names = ["a", "A", "ab", "aa", "b-a", "_"];
  values.setHost(
    hostRules([
      route(
        prefix("/"),
        answer(
          ...names.flatMap((name) => [cookie(name), "\n"]),
          ...names.slice(0, 4).flatMap((name) => [argument(name), "\n"]),
        ),
      ),
    ]),
  );

  it("in 20,000 random cookie headers and queries", () => {
    const random = new Random(7);
    const wrong: object[] = [];
    for (let i = 0; i < 20_000; i++) {
      const cookies = randomText(random, 'aAbB_-==;; , "', 24);
      const query = randomText(random, "aAbB==&&%;", 20);
      const expected = [
        ...names.map((name) => cookieOf(cookies, name)),
        ...names.slice(0, 4).map((name) => argumentOf(query, name)),
        "",
      ].join("\n");
      const decision = values.decide(request(`/?${query}`, { headers: { cookie: cookies } }), 0);
      const body = decision.action === "return" ? decision.body : undefined;
      if (body !== expected) wrong.push({ cookies, query, expected, body });
    }
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  it.each([
    ["a=1; a=2", "1"],
    ["b=x; a = 1 ; c=y", "1 "],
    ["b=x,a=1,c=y", "1,c=y"],
    ["A=1", "1"],
    ["aa=1", ""],
    ["xa=1", ""],
    ["a", ""],
    ["a=", ""],
    ["a=b=c", "b=c"],
    ["a; a=1", ""],
    ["a=;a=1", ""],
  ])("in the cookie header %s", (cookies, expected) => {
    const decision = values.decide(request("/", { headers: { cookie: cookies } }), 0);
    expect(decision.action === "return" && decision.body?.split("\n")[0]).toBe(expected);
  });
});
