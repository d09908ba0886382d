import { describe, expect, it } from "vitest";
import { parseText, problemTexts, routesOf, virtualServer } from "./parse-support.js";

describe("paths of a VirtualServer", () => {
  it.each([
    ["/x", { kind: "prefix", path: "/x", stopsRegex: false }, "/x"],
    ["=/x", { kind: "exact", path: "/x" }, "=/x"],
    ["=  /x", { kind: "exact", path: "/x" }, "=/x"],
    ["^~ /x", { kind: "prefix", path: "/x", stopsRegex: true }, "^~ /x"],
    ["~ ^/a{2}$", { kind: "regex", pattern: "^/a{2}$", ignoreCase: false, anchored: false }, "~ ^/a{2}$"],
    ["~*   .html$", { kind: "regex", pattern: ".html$", ignoreCase: true, anchored: false }, "~* .html$"],
  ])("%s", (path, rule, label) => {
    const [route] = routesOf(parseText(virtualServer(`[{path: '${path}', action: {pass: app}}]`)));
    expect({ rule: route.path, label: route.label }).toEqual({ rule, label });
  });

  it.each([
    ["x", "error PATH_INVALID"],
    ["= x", "error PATH_INVALID"],
    ["~", "error REGEX_INVALID"],
    ["~ (a", "error REGEX_INVALID"],
    ["/a//b", "warning PATH_UNREACHABLE"],
    ["=/a/..", "warning PATH_UNREACHABLE"],
  ])("%s is reported", (path, problem) => {
    const parsed = parseText(virtualServer(`[{path: '${path}', action: {pass: app}}]`));
    expect(problemTexts(parsed)).toEqual([`${problem} spec.routes[0].path`]);
  });

  it("may end in a dot as raw text, for longer paths start with it", () => {
    expect(parseText(virtualServer("[{path: /a/., action: {pass: app}}]")).problems).toEqual([]);
  });

  it("are compared after white space is normalised when duplicates are looked for", () => {
    const parsed = parseText(
      virtualServer("[{path: '=/x', action: {pass: app}}, {path: '=  /x ', action: {pass: app}}]"),
    );
    expect(problemTexts(parsed)).toEqual(["error DUPLICATE_PATH spec.routes[1].path"]);
  });

  it("are not trimmed of spaces that only look like some", () => {
    const parsed = parseText(virtualServer('[{path: "=\\u00a0/x", action: {pass: app}}]'));
    expect(problemTexts(parsed)).toEqual(["error PATH_INVALID spec.routes[0].path"]);
  });

  it("may be the same text under another modifier", () => {
    const parsed = parseText(virtualServer("[{path: '=/x', action: {pass: app}}, {path: /x, action: {pass: app}}]"));
    expect(parsed.problems).toEqual([]);
  });
});

describe("lists of a VirtualServer", () => {
  const action = "action: {pass: app}";
  const many = (entry: string, count: number) => `[${Array(count).fill(entry).join(", ")}]`;

  it.each([
    ["conditions", "routes[0].matches[0]", `{${action}, conditions: ${many("{header: a, value: b}", 17)}}`],
    [
      "splits",
      "routes[0].matches[0]",
      `{conditions: [{header: a, value: b}], splits: ${many(`{weight: 0, ${action}}`, 17)}}`,
    ],
  ])("of more %s than a schema could check are errors", (name, path, match) => {
    const parsed = parseText(virtualServer(`[{path: /, ${action}, matches: [${match}]}]`));
    expect(problemTexts(parsed)).toContain(`error LIMIT_EXCEEDED spec.${path}.${name}`);
  });

  it.each([
    ["errorPages: [{codes: [null], redirect: {url: 'http://a'}}]", "errorPages[0].codes[0]"],
    ["action: {proxy: {upstream: app, responseHeaders: {ignore: [null]}}}", "action.proxy.responseHeaders.ignore[0]"],
  ])("with an empty entry are errors: %s", (field, path) => {
    const rest = field.startsWith("action") ? "" : `, ${action}`;
    const parsed = parseText(virtualServer(`[{path: /, ${field}${rest}}]`));
    expect(problemTexts(parsed)).toContain(`error FIELD_REQUIRED spec.routes[0].${path}`);
  });
});

describe("fields of a VirtualServer", () => {
  it("that are not known are warnings, with the name that may be meant", () => {
    const parsed = parseText(
      virtualServer("[{path: /, action: {pass: app}, matchs: []}]", "Host: x\ningress_class_name: y"),
    );
    expect(problemTexts(parsed).sort()).toEqual([
      "warning FIELD_UNKNOWN spec.Host",
      "warning FIELD_UNKNOWN spec.ingress_class_name",
      "warning FIELD_UNKNOWN spec.routes[0].matchs",
    ]);
    const messages = parsed.problems.map(({ message }) => message).join("\n");
    expect(messages).toContain("is host meant?");
    expect(messages).toContain("is ingressClassName meant?");
  });

  it("with raw configuration are refused with the reason", () => {
    const parsed = parseText(
      virtualServer("[{path: /, action: {pass: app}, location-snippets: x}]", "http-snippets: x\nserver-snippets: y"),
    );
    expect(problemTexts(parsed)).toEqual([
      "error SNIPPET_REFUSED spec.http-snippets",
      "error SNIPPET_REFUSED spec.server-snippets",
      "error SNIPPET_REFUSED spec.routes[0].location-snippets",
    ]);
    expect(parsed.problems[0].message).toContain("CVE-2021-25742");
  });

  it("that act later are warnings, never silently ignored", () => {
    const parsed = parseText(virtualServer("[{path: /, action: {pass: app}}]", "listener: {http: h}"));
    expect(problemTexts(parsed)).toEqual(["warning NOT_YET_ACTIVE spec.listener"]);
  });

  it("need a host, and one action, splits or route for each path", () => {
    const text =
      "{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: a}, spec: {routes: [{path: /}, {path: /b, route: c, splits: []}]}}";
    expect(problemTexts(parseText(text))).toEqual([
      "error FIELD_REQUIRED spec.host",
      "error FIELD_CONFLICT spec.routes[0]",
      "error FIELD_CONFLICT spec.routes[1]",
    ]);
  });

  it("of a delegated route cannot hold matches", () => {
    const parsed = parseText(
      virtualServer(
        "[{path: /, route: team/part, matches: [{conditions: [{header: a, value: b}], action: {pass: app}}]}]",
      ),
    );
    expect(problemTexts(parsed)).toEqual(["error FIELD_CONFLICT spec.routes[0].matches"]);
  });

  it("tls.redirect are validated also while it is switched off", () => {
    const parsed = parseText(virtualServer("[]", "tls: {redirect: {enable: false, code: 303, basedOn: wish}}"));
    expect(problemTexts(parsed)).toEqual([
      "error STATUS_INVALID spec.tls.redirect.code",
      "error ENUM_INVALID spec.tls.redirect.basedOn",
    ]);
  });
});

describe("a VirtualServerRoute", () => {
  it("cannot delegate any further", () => {
    const text =
      "{apiVersion: k8s.njet.org/v1, kind: VirtualServerRoute, metadata: {name: a}, spec: {host: a.b, subroutes: [{path: /a, route: c}]}}";
    expect(problemTexts(parseText(text))).toEqual([
      "warning FIELD_UNKNOWN spec.subroutes[0].route",
      "error FIELD_CONFLICT spec.subroutes[0]",
    ]);
  });
});
