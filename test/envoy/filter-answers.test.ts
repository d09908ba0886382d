import { describe, expect, it } from "vitest";
import { sessionCookieText } from "../../controller/proxies/embedded/session-cookie.js";
import type { Action } from "../../core-wasm/binding/source.js";
import { answer, header, peers } from "../support/rules.js";
import { upstream } from "./bundles.js";
import { filterWith, headerOf, TO_PLAIN, withHeaders } from "./filter-plugin.js";

describe("an answer of the filter", () => {
  it("is a redirect, with the headers that the object adds", () => {
    const { answer } = filterWith({
      kind: "redirect",
      status: 308,
      location: ["https://", { kind: "variable", name: "host" }, { kind: "variable", name: "request_uri" }],
      headers: [{ op: "add-response", name: "X-Added", value: ["1"], always: false }],
    }).get("/a?b");
    expect(answer).toEqual({
      status: 308,
      headers: [
        ["x-added", "1"],
        ["location", "https://example.com/a?b"],
      ],
      body: "",
    });
  });

  it("is a body with its type", () => {
    const { answer: given } = filterWith({ ...answer("hello ", header("x-a")), status: 418 }).get("/", [
      ["x-a", "you"],
    ]);
    expect(given).toEqual({ status: 418, headers: [["content-type", "text/plain"]], body: "hello you" });
  });

  it("is 400, 404 or 503 as the core decides, for Envoy to show its own page", () => {
    const { host, plugin, get } = filterWith({ kind: "proxy", upstream: "absent" });
    expect(get("/").answer).toEqual({ status: 503, headers: [], body: "" });
    expect(get("/%zz").answer?.status).toBe(400);
    expect(
      host.request(plugin, [
        [":authority", "elsewhere.test"],
        [":path", "/"],
      ]).answer?.status,
    ).toBe(404);
  });

  it("is 414 where host and target are too long for the core", () => {
    expect(filterWith(TO_PLAIN).get(`/${"a".repeat(65_536)}`).answer?.status).toBe(414);
  });

  it("is the error page of the object where the core finds no peer", () => {
    const { get } = filterWith({
      kind: "proxy",
      upstream: "absent",
      errorPages: [
        {
          codes: [502, 503],
          kind: "return",
          status: 200,
          contentType: "text/html",
          body: ["sorry ", { kind: "variable", name: "uri" }],
          headers: [{ op: "add-response", name: "X-Page", value: ["1"], always: true }],
        },
      ],
    });
    expect(get("/a").answer).toEqual({
      status: 200,
      headers: [
        ["content-type", "text/html"],
        ["x-page", "1"],
      ],
      body: "sorry /a",
    });
  });
});

describe("an answer of a peer", () => {
  const FROM_PEER = { "response.code_details": "via_upstream" };

  it("gets and loses the headers that the object says", () => {
    const { host, get } = filterWith(
      withHeaders(
        { op: "add-response", name: "X-Plain", value: [header("x-a")], always: false },
        { op: "add-response", name: "X-Always", value: ["1"], always: true },
        { op: "hide-response", name: "X-Powered-By" },
      ),
    );
    host.properties = FROM_PEER;
    for (const status of [200, 500]) {
      const stream = get("/", [["x-a", `of ${status}`]]);
      host.respond(stream, [
        [":status", String(status)],
        ["x-powered-by", "something"],
        ["x-kept", "1"],
      ]);
      expect(headerOf(stream.response, "x-plain")).toBe(status === 200 ? "of 200" : undefined);
      expect(headerOf(stream.response, "x-always")).toBe("1");
      expect(headerOf(stream.response, "x-powered-by")).toBeUndefined();
      expect(headerOf(stream.response, "x-kept")).toBe("1");
    }
  });

  it("has the values of its own request, also when other requests came between", () => {
    const { host, get } = filterWith(
      withHeaders({ op: "add-response", name: "X-Echo", value: [header("x-a")], always: false }),
    );
    host.properties = FROM_PEER;
    const streams = Array.from({ length: 100 }, (_, i) => get("/", [["x-a", String(i)]]));
    for (const [i, stream] of streams.entries()) {
      host.respond(stream, [[":status", "200"]]);
      expect(headerOf(stream.response, "x-echo")).toBe(String(i));
      host.end(stream.id);
    }
  });

  it("is replaced by the error page that lists its status, and by no other", () => {
    const { host, get } = filterWith({
      ...TO_PLAIN,
      errorPages: [
        { codes: [404], kind: "redirect", status: 302, location: ["/lost?", { kind: "variable", name: "uri" }] },
        { codes: [404, 500], kind: "return", contentType: "text/plain", body: ["broken"] },
      ],
    });
    host.properties = FROM_PEER;
    const answerTo = (status: string) => {
      const stream = get("/a");
      host.respond(stream, [[":status", status]]);
      return stream.answer;
    };
    expect(answerTo("404")).toEqual({ status: 302, headers: [["location", "/lost?/a"]], body: "" });
    expect(answerTo("500")).toEqual({ status: 500, headers: [["content-type", "text/plain"]], body: "broken" });
    expect(answerTo("502")).toBeUndefined();
  });

  it("that Envoy gives in the peer's place has the error page, and no headers that are for answers of peers", () => {
    const { host, get } = filterWith({
      ...withHeaders({ op: "add-response", name: "X-Always", value: ["1"], always: true }),
      errorPages: [{ codes: [503], kind: "return", contentType: "text/plain", body: ["no peer"] }],
    } as Action);
    host.properties = { "response.code_details": "upstream_reset_before_response_started{connection_failure}" };
    const refused = get();
    host.respond(refused, [[":status", "503"]]);
    expect(refused.answer?.body).toBe("no peer");
    const late = get();
    host.respond(late, [[":status", "504"]]);
    expect(late.response).toEqual([[":status", "504"]]);
  });

  it("brings the session cookie to a client that needs it, as the embedded proxy writes it", () => {
    const cookie = {
      ...{ name: "njet", path: "/shop", domain: "example.com", httpOnly: true, secure: true, sameSite: "Lax" as const },
      expires: 3_600_000,
    };
    const now = Date.UTC(2028, 1, 29, 23, 30);
    const sticky = upstream(peers("plain", [80, 81]), { sessionCookie: cookie });
    const { host, get } = filterWith(TO_PLAIN, [sticky], { now: () => now });
    host.properties = FROM_PEER;
    const stream = get();
    host.respond(stream, [[":status", "200"]]);
    const given = headerOf(stream.response, "set-cookie") ?? "";
    const session = /^njet=([0-9a-f]{8});/.exec(given)?.[1] ?? "";
    expect(given).toBe(sessionCookieText(cookie, session, now));
    for (let i = 0; i < 10; i++) expect(get("/", [["cookie", `njet=${session}`]]).destination).toBe(stream.destination);
  });

  it("brings a cookie that never expires, or ends with the browser, only once", () => {
    for (const expires of ["max", undefined] as const) {
      const cookie = { name: "njet", httpOnly: false, secure: false, expires };
      const { host, get } = filterWith(TO_PLAIN, [upstream(peers("plain", [80]), { sessionCookie: cookie })]);
      host.properties = FROM_PEER;
      const first = get();
      host.respond(first, [[":status", "200"]]);
      const given = headerOf(first.response, "set-cookie") ?? "";
      expect(given).toBe(sessionCookieText(cookie, given.slice(5, 13), 0));
      const second = get("/", [["cookie", given.slice(0, 13)]]);
      host.respond(second, [[":status", "200"]]);
      expect(second.response).toEqual([[":status", "200"]]);
    }
  });
});
