import { describe, expect, it } from "vitest";
import { parseText, problemTexts, routesOf, virtualServer } from "./parse-support.js";

function parseCondition(condition: string) {
  return parseText(
    virtualServer(`[{path: /, matches: [{conditions: [${condition}], action: {pass: app}}], action: {pass: app}}]`),
  );
}

const CONDITION = "spec.routes[0].matches[0].conditions[0]";

describe("a condition", () => {
  it.each([
    ["{header: X-Plan, value: Gold}", { kind: "header", name: "x-plan" }, { kind: "equals", value: "Gold" }, false],
    ["{cookie: ab-test, value: '!b'}", { kind: "cookie", name: "ab-test" }, { kind: "equals", value: "b" }, true],
    ["{argument: v_1, value: ''}", { kind: "argument", name: "v_1" }, { kind: "empty" }, false],
    ["{argument: v, value: '!'}", { kind: "argument", name: "v" }, { kind: "empty" }, true],
    [
      "{variable: $request_method, value: '~^P'}",
      { kind: "variable", name: "request_method" },
      { kind: "regex", pattern: "^P", ignoreCase: false },
      false,
    ],
    [
      "{variable: $http_x_trace_id, value: '!~*^p'}",
      { kind: "header", name: "x-trace-id" },
      { kind: "regex", pattern: "^p", ignoreCase: true },
      true,
    ],
    ["{variable: $cookie_a, value: x}", { kind: "cookie", name: "a" }, { kind: "equals", value: "x" }, false],
    ["{variable: $arg_a, value: x}", { kind: "argument", name: "a" }, { kind: "equals", value: "x" }, false],
  ])("%s", (text, source, test, negated) => {
    const [condition] = routesOf(parseCondition(text))[0].matches[0].conditions;
    expect(condition).toEqual({ source, test, negated });
  });

  it.each([
    ["{value: x}", "error FIELD_CONFLICT", ""],
    ["{header: a, cookie: b, value: x}", "error FIELD_CONFLICT", ""],
    ["{header: a}", "error FIELD_REQUIRED", ".value"],
    ["{header: a, value: 1}", "error FIELD_TYPE", ".value"],
    ["{header: 'a b', value: x}", "error HEADER_INVALID", ".header"],
    ["{cookie: a.b, value: x}", "error CONDITION_INVALID", ".cookie"],
    ["{argument: a-b, value: x}", "error CONDITION_INVALID", ".argument"],
    ["{variable: scheme, value: x}", "error CONDITION_INVALID", ".variable"],
    ["{variable: $uri, value: x}", "error VARIABLE_UNKNOWN", ".variable"],
    ["{variable: $constructor, value: x}", "error VARIABLE_UNKNOWN", ".variable"],
    ["{header: a, value: '~(x'}", "error REGEX_INVALID", ".value"],
    ["{header: a, value: '~'}", "error REGEX_INVALID", ".value"],
  ])("%s is reported", (text, problem, path) => {
    expect(problemTexts(parseCondition(text))).toEqual([`${problem} ${CONDITION}${path}`]);
  });

  it("with an unknown variable lists those that are allowed", () => {
    const [{ message }] = parseCondition("{variable: $upstream_addr, value: x}").problems;
    for (const name of ["$args", "$http2", "$remote_port", "$scheme", "$arg_x", "$http_x", "$cookie_x"]) {
      expect(message).toContain(name);
    }
  });

  it("is needed at least once in a match", () => {
    const parsed = parseText(
      virtualServer("[{path: /, matches: [{conditions: [], action: {pass: app}}], action: {pass: app}}]"),
    );
    expect(problemTexts(parsed)).toEqual(["error FIELD_REQUIRED spec.routes[0].matches[0].conditions"]);
  });
});
