import { describe, expect, it } from "vitest";
import { parseText, problemTexts, routesOf, virtualServer } from "./parse-support.js";

const parseAction = (action: string, path = "/") => parseText(virtualServer(`[{path: '${path}', action: ${action}}]`));
const outcomeOf = (action: string, path?: string) => routesOf(parseAction(action, path))[0].outcome;
const ACTION = "spec.routes[0].action";

describe("pass and proxy", () => {
  it("name the upstream by its identity", () => {
    expect(outcomeOf("{pass: app}")).toEqual({ kind: "proxy", upstream: "VirtualServer/default/sample/app" });
  });

  it.each(["{pass: nowhere}", "{pass: __proto__}", "{pass: constructor}"])("%s is an unknown upstream", (action) => {
    expect(problemTexts(parseAction(action))).toEqual([`error UPSTREAM_UNKNOWN ${ACTION}.pass`]);
  });

  it.each([
    ["/a", "/x$y", { kind: "prefix", text: "/x$y" }, "TEXT_INVALID"],
    ["/a", "/x", { kind: "prefix", text: "/x" }, undefined],
    ["=/a", "/x", { kind: "path", template: ["/x"] }, undefined],
    [
      "~ ^/(a)/(b)$",
      "/$2/y/$1",
      { kind: "path", template: ["/", { kind: "group", index: 2 }, "/y/", { kind: "group", index: 1 }] },
      undefined,
    ],
    ["~ ^/(a)$", "/$2", undefined, "CAPTURE_UNKNOWN"],
    ["~ ^/(a)$", "/$0", undefined, "CAPTURE_UNKNOWN"],
    ["/a", "/$1", undefined, "CAPTURE_UNKNOWN"],
    ["/a", "/${host}", undefined, "VARIABLE_UNKNOWN"],
    ["/a", "x", undefined, "PATH_INVALID"],
    ["/a", "/x?y=1", undefined, "PATH_INVALID"],
    ["/a", "/x y", undefined, "PATH_INVALID"],
    ["/a", "/x%zz", undefined, "PATH_INVALID"],
  ])("on a route %s rewrite to %s", (path, rewritePath, rewrite, code) => {
    const action = `{proxy: {upstream: app, rewritePath: '${rewritePath}'}}`;
    if (code !== undefined) {
      expect(problemTexts(parseAction(action, path))).toEqual([`error ${code} ${ACTION}.proxy.rewritePath`]);
    } else {
      expect(outcomeOf(action, path)).toEqual({ kind: "proxy", upstream: "VirtualServer/default/sample/app", rewrite });
    }
  });

  it("change headers in one order, with variables filled in later", () => {
    const action = `{proxy: {upstream: app,
      requestHeaders: {pass: false, set: [{name: X-Host, value: 'h-\${host}'}, {name: X-Gone, value: ''}]},
      responseHeaders: {hide: [X-A], pass: [Server], ignore: [Expires],
        add: [{name: X-B, value: b, always: true}, {name: X-C, value: '\${http_x_id}'}]}}}`;
    const outcome = outcomeOf(action);
    expect(outcome?.kind === "proxy" && outcome.headers).toEqual([
      { op: "drop-request" },
      { op: "set-request", name: "X-Host", value: ["h-", { kind: "variable", name: "host" }] },
      { op: "set-request", name: "X-Gone", value: [] },
      { op: "hide-response", name: "X-A" },
      { op: "pass-response", name: "Server" },
      { op: "ignore-response", name: "Expires" },
      { op: "add-response", name: "X-B", value: ["b"], always: true },
      { op: "add-response", name: "X-C", value: [{ kind: "header", name: "x-id" }], always: false },
    ]);
  });

  it.each([
    ["{name: 'X A', value: b}", "HEADER_INVALID", "name"],
    ["{name: Content-Length, value: '5'}", "HEADER_INVALID", "name"],
    ["{name: transfer-encoding, value: chunked}", "HEADER_INVALID", "name"],
    ['{name: X-A, value: "a\\r\\nX-B: c"}', "HEADER_INVALID", "value"],
    ["{name: X-A, value: '${no_such}'}", "VARIABLE_UNKNOWN", "value"],
  ])("cannot set the header %s", (header, code, field) => {
    const parsed = parseAction(`{proxy: {upstream: app, requestHeaders: {set: [${header}]}}}`);
    expect(problemTexts(parsed)).toEqual([`error ${code} ${ACTION}.proxy.requestHeaders.set[0].${field}`]);
  });
});

describe("redirect", () => {
  it("fills in the variables that are allowed", () => {
    expect(outcomeOf("{redirect: {url: '${scheme}://${host}:8443${request_uri}', code: 308}}")).toEqual({
      kind: "redirect",
      status: 308,
      location: [
        { kind: "variable", name: "scheme" },
        "://",
        { kind: "variable", name: "host" },
        ":8443",
        { kind: "variable", name: "request_uri" },
      ],
    });
  });

  it("answers 301 unless told otherwise, and may follow the forwarded scheme", () => {
    expect(outcomeOf("{redirect: {url: '${http_x_forwarded_proto}://a.b/'}}")).toMatchObject({
      status: 301,
      location: [{ kind: "header", name: "x-forwarded-proto" }, "://a.b/"],
    });
  });

  it.each([
    ["/login", "URL_INVALID"],
    ["ftp://a.b/", "URL_INVALID"],
    ["//a.b/", "URL_INVALID"],
    ["javascript:alert(1)", "URL_INVALID"],
    ["${host}/x", "URL_INVALID"],
    ["https://a.b/ x", "URL_INVALID"],
    ["https://a.b/${args}", "VARIABLE_UNKNOWN"],
    ["https://a.b/$request_uri", "TEXT_INVALID"],
    ["https://a.b/$1", "CAPTURE_UNKNOWN"],
    ["https://a.b/${host", "TEXT_INVALID"],
  ])("refuses %s", (url, code) => {
    expect(problemTexts(parseAction(`{redirect: {url: '${url}'}}`))).toEqual([`error ${code} ${ACTION}.redirect.url`]);
  });

  it.each([300, 303, 305, 399, 200])("refuses the code %i", (code) => {
    const parsed = parseAction(`{redirect: {url: 'https://a.b', code: ${code}}}`);
    expect(problemTexts(parsed)).toEqual([`error STATUS_INVALID ${ACTION}.redirect.code`]);
  });
});

describe("return", () => {
  it("answers 200 and plain text unless told otherwise", () => {
    expect(outcomeOf('{return: {body: \'{"a":"${request_method}"}\'}}')).toEqual({
      kind: "return",
      status: 200,
      contentType: "text/plain",
      body: ['{"a":"', { kind: "variable", name: "request_method" }, '"}'],
    });
  });

  it("leaves a dollar sign alone that begins no name", () => {
    expect(outcomeOf("{return: {body: 'a $ b $'}}")).toMatchObject({ body: ["a $ b $"] });
  });

  it.each([
    ["{code: 204}", "FIELD_REQUIRED", "body"],
    ["{code: 302, body: x}", "STATUS_INVALID", "code"],
    ["{code: 99, body: x}", "STATUS_INVALID", "code"],
    ["{code: '200', body: x}", "FIELD_TYPE", "code"],
    ["{type: html, body: x}", "HEADER_INVALID", "type"],
    ['{type: "text/plain;\u2003charset=utf-8", body: x}', "HEADER_INVALID", "type"],
    ['{type: "text/plain; title=\\"\u2003\\"", body: x}', "HEADER_INVALID", "type"],
    ["{body: '$host'}", "TEXT_INVALID", "body"],
    ["{body: '${upstream_addr}'}", "VARIABLE_UNKNOWN", "body"],
  ])("%s is reported", (value, code, field) => {
    expect(problemTexts(parseAction(`{return: ${value}}`))).toEqual([`error ${code} ${ACTION}.return.${field}`]);
  });
});

describe("splits", () => {
  const parseSplits = (splits: string) => parseText(virtualServer(`[{path: /, splits: ${splits}}]`));

  it("have weights from 0 to 100 that add up to 100", () => {
    const [route] = routesOf(parseSplits("[{weight: 0, action: {pass: app}}, {weight: 100, action: {pass: app}}]"));
    expect(route.outcome).toMatchObject({ kind: "split", entries: [{ weight: 0 }, { weight: 100 }] });
  });

  it.each([
    ["[{weight: 100, action: {pass: app}}]", ["error FIELD_REQUIRED spec.routes[0].splits"]],
    [
      "[{weight: 50, action: {pass: app}}, {weight: 51, action: {pass: app}}]",
      ["error SPLIT_WEIGHTS spec.routes[0].splits"],
    ],
    [
      "[{weight: -1, action: {pass: app}}, {weight: 100, action: {pass: app}}]",
      ["error NUMBER_RANGE spec.routes[0].splits[0].weight"],
    ],
  ])("%s are reported", (splits, problems) => {
    expect(problemTexts(parseSplits(splits))).toEqual(problems);
  });
});
