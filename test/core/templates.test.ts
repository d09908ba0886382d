import { describe, expect, it } from "vitest";
import type {
  Action,
  ErrorPage,
  HeaderChange,
  PathRule,
  Rewrite,
  Template,
  VariableName,
} from "../../core-wasm/binding/source.js";
import { makeRoutingTable, sharedCore } from "../support/core.js";
import { RawTable, WORDS } from "../support/raw-core.js";
import {
  answer,
  argument,
  cookie,
  exact,
  header,
  hostRules,
  peers,
  prefix,
  type RequestParts,
  regex,
  request,
  route,
  segments,
} from "../support/rules.js";

const variable = (name: VariableName) => ({ kind: "variable", name }) as const;
const group = (index: number) => ({ kind: "group", index }) as const;

/** What a single route decides about one request. */
function decided(path: PathRule, outcome: Action, target: string, parts: RequestParts = {}) {
  const table = makeRoutingTable();
  table.setPeers(peers("u", [80]));
  table.setHost(hostRules([route(path, outcome)]));
  const decision = table.decide(request(target, parts), 0);
  table.free();
  return decision;
}

function rewritten(path: PathRule, rewrite: Rewrite, target: string, parts: RequestParts = {}): string {
  const decision = decided(path, { kind: "proxy", upstream: "u", rewrite }, target, parts);
  return decision.action === "proxy" ? decision.target : `${decision.action} ${JSON.stringify(decision)}`;
}

function redirected(location: Template, target: string, parts: RequestParts = {}, path = prefix("/")): string {
  const decision = decided(path, { kind: "redirect", status: 302, location }, target, parts);
  return decision.action === "redirect" ? decision.location : decision.action;
}

function bodyOf(body: Template, target: string, parts: RequestParts = {}, path = prefix("/")): string | undefined {
  const decision = decided(path, answer(...body), target, parts);
  return decision.action === "return" ? decision.body : undefined;
}

function headersOf(headers: HeaderChange[], target = "/", parts: RequestParts = {}) {
  return decided(prefix("/"), { kind: "proxy", upstream: "u", headers }, target, parts).headers;
}

describe("a target that is not rewritten", () => {
  it.each(["/a%20b/%2e%2E/c//d?x=%zz&y#z", "/é?é", "/?", "/a?b?c"])("goes upstream as it came: %s", (target) => {
    const raw = Buffer.from(target, "utf8").toString("latin1");
    const decision = decided(prefix("/"), { kind: "proxy", upstream: "u" }, raw);
    expect(decision).toMatchObject({ action: "proxy", target: raw });
  });

  it("loses scheme and authority of the absolute form", () => {
    const proxy = { kind: "proxy", upstream: "u" } as const;
    expect(decided(prefix("/"), proxy, "http://example.com:80/a?b")).toMatchObject({ target: "/a?b" });
    expect(decided(prefix("/"), proxy, "http://example.com?b")).toMatchObject({ target: "/?b" });
    expect(decided(prefix("/"), proxy, "http://example.com")).toMatchObject({ target: "/" });
  });
});

describe("a rewrite of the matched prefix", () => {
  const to = (text: string): Rewrite => ({ kind: "prefix", text });

  it.each([
    ["/tea", "/coffee", "/tea/green", "/coffee/green"],
    ["/tea", "/coffee", "/teapot", "/coffeepot"],
    ["/tea/", "/", "/tea/green", "/green"],
    ["/tea/", "", "/tea/green", "/green"],
    ["/tea", "", "/tea", "/"],
    ["/tea", "coffee", "/tea/green", "/coffee/green"],
    ["/", "/all/", "/tea", "/all/tea"],
  ])("puts another text in the place of %s: %s", (rule, text, target, expected) => {
    expect(rewritten(prefix(rule), to(text), target)).toBe(expected);
  });

  it("replaces whole segments, a final slash of the rule aside", () => {
    expect(rewritten(segments("/tea/"), to("/coffee"), "/tea/green")).toBe("/coffee/green");
    expect(rewritten(segments("/tea"), to("/coffee"), "/tea")).toBe("/coffee");
  });

  it("escapes again what was decoded", () => {
    expect(rewritten(prefix("/tea"), to("/new"), "/tea/a%20b%25%3F%23%22%3C%0d%0a%7F%C3%A9+&=")).toBe(
      "/new/a%20b%25%3F%23%22%3C%0D%0A%7F%C3%A9+&=",
    );
  });

  it("keeps what the client sent where nothing was decoded", () => {
    const raw = '/tea/é"<^`{|}\\';
    expect(rewritten(prefix("/tea"), to("/new"), raw)).toBe(raw.replace("/tea", "/new"));
  });

  it("works on the normalised path", () => {
    expect(rewritten(prefix("/tea"), to("/new"), "/x/..//%74ea/./green")).toBe("/new/green");
  });

  it("escapes blanks, control characters and non-ASCII text of the object", () => {
    expect(rewritten(prefix("/tea"), to("/é \r\n"), "/tea")).toBe("/%C3%A9%20%0D%0A");
  });

  it("carries the query over once", () => {
    expect(rewritten(prefix("/tea"), to("/new"), "/tea?a=1&b=%20?#fragment")).toBe("/new?a=1&b=%20?");
    expect(rewritten(prefix("/tea"), to("/new?x=y"), "/tea?a=1")).toBe("/new?x=y&a=1");
    expect(rewritten(prefix("/tea"), to("/new?x=y"), "/tea")).toBe("/new?x=y");
  });

  it("leaves the target alone where no route matched", () => {
    const table = makeRoutingTable();
    table.setPeers(peers("u", [80]));
    const outcome: Action = { kind: "proxy", upstream: "u", rewrite: to("/new") };
    table.setHost(hostRules([], { unmatched: { resource: "r", outcome } }));
    expect(table.decide(request("/a%20b?c"), 0)).toMatchObject({ action: "proxy", target: "/a%20b?c" });
    table.free();
  });
});

describe("a rewrite of the path", () => {
  const to = (...template: Template): Rewrite => ({ kind: "path", template });

  it("is the whole new path, with the query", () => {
    expect(rewritten(exact("/tea"), to("/beverages/hot"), "/tea?a=1")).toBe("/beverages/hot?a=1");
  });

  it("fills groups of the regex in", () => {
    const path = regex("^/(\\w+)/(\\w+)(/x)?$");
    expect(rewritten(path, to("/", group(2), "/", group(1), group(3), "-", group(0)), "/a/b")).toBe("/b/a-/a/b");
  });

  it("leaves groups empty that the regex does not have", () => {
    expect(rewritten(regex("^/(a)"), to("/", group(1), group(2), group(9), "."), "/a")).toBe("/a.");
  });

  it("takes the groups of the route that decides, not of one before it", () => {
    const table = makeRoutingTable();
    table.setPeers(peers("u", [80]));
    const rewrite = (index: number): Action => ({ kind: "proxy", upstream: "u", rewrite: to("/", group(index)) });
    const never = [
      {
        conditions: [{ source: header("x"), test: { kind: "equals", value: "1" }, negated: false } as const],
        outcome: rewrite(1),
      },
    ];
    table.setHost(hostRules([route(regex("/(a)"), undefined, { matches: never }), route(regex("/a(b)"), rewrite(1))]));
    expect(table.decide(request("/ab"), 0)).toMatchObject({ target: "/b" });
    table.free();
  });

  it("escapes values, so that none can begin a query or end the line", () => {
    expect(
      rewritten(exact("/a"), to("/", argument("x"), header("h"), variable("uri")), "/a?x=b?c", {
        headers: { h: "1 2\r\n#" },
      }),
    ).toBe("/b%3Fc1%202%0D%0A%23/a?x=b?c");
  });

  it.each([
    ["", "/"],
    ["a", "/a"],
    ["?x", "/?x"],
    ["//a", "//a"],
    ["/", "/"],
  ])("begins with a slash whatever the template gives: '%s'", (text, expected) => {
    expect(rewritten(exact("/a"), to(text), "/a")).toBe(expected);
  });
});

describe("a redirect", () => {
  it("is built from scheme, host and target", () => {
    const location = [variable("scheme"), "://", variable("host"), variable("request_uri")];
    expect(redirected(location, "/a%20b?c=%0d", { host: "Example.com:8080", scheme: "https" })).toBe(
      "https://example.com/a%20b?c=%0d",
    );
  });

  it("never holds a raw line break, blank or control character, whatever a header says", () => {
    const proto = 'ht\r\nSet-Cookie: a=b\r\n\r\n\0\t \x7f<é"';
    expect(
      redirected([header("x-forwarded-proto"), "://", variable("host"), "/"], "/", {
        headers: { "x-forwarded-proto": proto },
      }),
    ).toBe("ht%0D%0ASet-Cookie:%20a=b%0D%0A%0D%0A%00%09%20%7F%3C%E9%22://example.com/");
  });

  it("never holds them from decoded parts of the path or from the object either", () => {
    expect(redirected(["/é \r\n", variable("uri"), "?", argument("a")], "/%0d%0a%20?a=%0d")).toBe(
      "/%C3%A9%20%0D%0A/%0D%0A%20?%0d",
    );
    expect(redirected([group(1)], "/%0d%0a%20", {}, regex("^(.*\\s.*)$"))).toMatch(/^[!-~]*$/);
  });

  it("holds the request line in full", () => {
    expect(redirected(["/?was=", variable("request")], "/a?b", { method: "OPTIONS" })).toBe(
      "/?was=OPTIONS%20/a?b%20HTTP/1.1",
    );
  });
});

describe("a body", () => {
  it("holds values as they are", () => {
    const body = [cookie("c"), "|", argument("a"), "|", header("x-h"), "|", variable("uri"), "|é"];
    expect(bodyOf(body, "/%20%0a?a=%20", { headers: { cookie: "c=1 2", "x-h": "\t<\xff" } })).toBe(
      `1 2|%20|\t<\xff|/ \n|${Buffer.from("é").toString("latin1")}`,
    );
  });

  it("holds every variable", () => {
    const names: VariableName[] = ["args", "query_string", "host", "http2", "https", "scheme", "uri", "request_uri"];
    const facts: VariableName[] = ["remote_addr", "remote_port", "request", "request_method", "server_protocol"];
    const body = [...names, ...facts].flatMap((name): Template => [variable(name), "|"]);
    const parts = { method: "PUT", clientAddress: "::1", clientPort: 7 };
    expect(bodyOf(body, "/a//b?c#d", { ...parts })).toBe(
      "c|c|example.com|||http|/a/b|/a//b?c#d|::1|7|PUT /a//b?c#d HTTP/1.1|PUT|HTTP/1.1|",
    );
    expect(bodyOf(body, "/", { ...parts, scheme: "https", protocol: "HTTP/2.0" })).toBe(
      "||example.com|h2|on|https|/|/|::1|7|PUT / HTTP/2.0|PUT|HTTP/2.0|",
    );
  });

  it("holds groups of the regex", () => {
    expect(bodyOf([group(2), "-", group(1)], "/%41/b", {}, regex("/(.)/(.)"))).toBe("b-A");
  });

  it.each([16_384, 16_385, 50_000])("of %d characters of four bytes each is kept whole", (length) => {
    const text = "😀".repeat(length);
    const decision = decided(prefix("/"), answer(text), "/");
    expect(decision.action === "return" && Buffer.from(decision.body ?? "", "latin1").toString("utf8") === text).toBe(
      true,
    );
  });

  it("that does not fit the output is answered with 414, and the context goes on", () => {
    const raw = new RawTable(sharedCore, 1024, 64);
    raw.load([hostRules([route(prefix("/"), answer("x".repeat(60), variable("uri")))])]);
    for (const [target, status, length] of [
      ["/abc", 200, 64],
      ["/abcd", 414, 0],
      [`/${"a".repeat(1000)}`, 414, 0],
      ["/", 200, 61],
    ] as const) {
      expect(raw.route("example.com", target)).toBe(0);
      expect([raw.word(WORDS.status), raw.word(WORDS.textLength)]).toEqual([status, length]);
    }
    raw.free();
  });

  it("is cut off nowhere near the end of the output, also where values are escaped", () => {
    for (let room = 0; room < 40; room++) {
      const raw = new RawTable(sharedCore, 64, room);
      const location: Template = ["/x", { kind: "variable", name: "uri" }, { kind: "variable", name: "args" }];
      raw.load([hostRules([route(prefix("/"), { kind: "redirect", status: 302, location })])]);
      raw.route("example.com", "/%20%0a?<>");
      const whole = "/x/%20%0A%3C%3E";
      expect([raw.word(WORDS.status), raw.answer()]).toEqual(room >= whole.length ? [302, whole] : [414, ""]);
      raw.free();
    }
  });
});

describe("header changes", () => {
  it("come in their order, names as written and values filled in", () => {
    const changes: HeaderChange[] = [
      { op: "set-request", name: "X-Real-Host", value: [variable("host"), ":", argument("a")] },
      { op: "drop-request" },
      { op: "add-response", name: "X-Added", value: ["plain"], always: true },
      { op: "add-response", name: "X-Maybe", value: [header("x-h")], always: false },
      { op: "hide-response", name: "Server" },
      { op: "pass-response", name: "Date" },
      { op: "ignore-response", name: "X-Accel-Redirect" },
      { op: "set-request", name: "X-Removed", value: [header("x-absent")] },
    ];
    expect(headersOf(changes, "/?a=1", { headers: { "x-h": "seen" } })).toEqual([
      { op: "set-request", name: "X-Real-Host", value: "example.com:1" },
      { op: "drop-request" },
      { op: "add-response", name: "X-Added", value: "plain", always: true },
      { op: "add-response", name: "X-Maybe", value: "seen", always: false },
      { op: "hide-response", name: "Server" },
      { op: "pass-response", name: "Date" },
      { op: "ignore-response", name: "X-Accel-Redirect" },
      { op: "set-request", name: "X-Removed", value: "" },
    ]);
  });

  it("hold no control character but tab, whatever the request or the object says", () => {
    const value: Template = ["a\r\nb", header("x-h"), variable("uri")];
    const changes: HeaderChange[] = [{ op: "set-request", name: "X", value }];
    expect(headersOf(changes, "/%0d%0a%7f", { headers: { "x-h": "\r\n\0\t\xe9" } })).toEqual([
      { op: "set-request", name: "X", value: "a%0D%0Ab%0D%0A%00\t\xe9/%0D%0A%7F" },
    ]);
  });

  it("hold the request line in full", () => {
    const changes: HeaderChange[] = [{ op: "set-request", name: "X", value: ["<", variable("request"), ">"] }];
    expect(headersOf(changes, "/a")).toEqual([{ op: "set-request", name: "X", value: "<GET /a HTTP/1.1>" }]);
  });

  it("come with redirects and answers too", () => {
    const headers: HeaderChange[] = [{ op: "add-response", name: "X", value: [group(1)], always: true }];
    const expected = [{ op: "add-response", name: "X", value: "a", always: true }];
    const path = regex("^/(a)");
    expect(decided(path, { ...answer("ok"), headers }, "/a").headers).toEqual(expected);
    expect(decided(path, { kind: "redirect", status: 301, location: ["/"], headers }, "/a").headers).toEqual(expected);
    expect(decided(path, { kind: "proxy", upstream: "u", headers }, "/a").headers).toEqual(expected);
  });

  it("and error pages are told of where the upstream has no peer, for the answer that the proxy gives", () => {
    const headers: HeaderChange[] = [{ op: "add-response", name: "X", value: ["a"], always: true }];
    const page = { kind: "return", status: 200, contentType: "text/html" } as const;
    const errorPages: ErrorPage[] = [{ ...page, codes: [503], body: [variable("host")] }];
    expect(decided(prefix("/"), { kind: "proxy", upstream: "empty", headers, errorPages }, "/")).toMatchObject({
      action: "return",
      status: 503,
      headers: [{ op: "add-response", name: "X", value: "a", always: true }],
      errorPages: [{ ...page, codes: [503], body: "example.com", headers: [] }],
    });
  });
});
