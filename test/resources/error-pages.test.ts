import { describe, expect, it } from "vitest";
import { parseText, problemTexts, routesOf, virtualServer } from "./parse-support.js";

const LIST = "spec.routes[0].errorPages";
const withPages = (pages: string, rest = "action: {pass: app}") =>
  parseText(virtualServer(`[{path: /, errorPages: [${pages}], ${rest}}]`));
const pagesOf = (pages: string) => {
  const { outcome } = routesOf(withPages(pages))[0];
  return outcome?.kind === "proxy" ? outcome.errorPages : undefined;
};

describe("error pages of a route", () => {
  it("keep the status of the answer and are HTML unless they say otherwise", () => {
    expect(pagesOf("{codes: [502, 503], return: {body: sorry}}")).toEqual([
      { codes: [502, 503], kind: "return", contentType: "text/html", body: ["sorry"] },
    ]);
  });

  it("may name a status, a type, and headers", () => {
    const headers = [{ op: "add-response", name: "X-A", value: ["b"], always: true }];
    expect(
      pagesOf("{codes: [404], return: {code: 200, type: text/plain, body: x, headers: [{name: X-A, value: b}]}}"),
    ).toEqual([{ codes: [404], kind: "return", status: 200, contentType: "text/plain", body: ["x"], headers }]);
  });

  it("redirect with 301 unless they say otherwise", () => {
    expect(pagesOf("{codes: [404], redirect: {url: 'https://a/'}}")).toEqual([
      { codes: [404], kind: "redirect", status: 301, location: ["https://a/"] },
    ]);
  });

  it("belong to every action of the route that proxies, and to no other", () => {
    const page = "{codes: [404], return: {body: x}}";
    const matches = "matches: [{conditions: [{header: a, value: b}], action: {return: {body: y}}}]";
    const splits = "splits: [{weight: 50, action: {pass: app}}, {weight: 50, action: {redirect: {url: 'https://a/'}}}]";
    const [route] = routesOf(withPages(page, `${matches}, ${splits}`));
    expect(route.matches[0].outcome).not.toHaveProperty("errorPages");
    const entries = route.outcome?.kind === "split" ? route.outcome.entries : [];
    expect(entries.map(({ action }) => "errorPages" in action)).toEqual([true, false]);
  });

  it.each([
    ["{codes: [], return: {body: x}}", `error FIELD_REQUIRED ${LIST}[0].codes`],
    ["{codes: [200], return: {body: x}}", `error NUMBER_RANGE ${LIST}[0].codes[0]`],
    ["{codes: [null], return: {body: x}}", `error FIELD_REQUIRED ${LIST}[0].codes[0]`],
    ["{codes: [404]}", `error FIELD_CONFLICT ${LIST}[0]`],
    ["{codes: [404], return: {body: x}, redirect: {url: 'https://a/'}}", `error FIELD_CONFLICT ${LIST}[0]`],
    ["{codes: [404], redirect: {url: /x}}", `error URL_INVALID ${LIST}[0].redirect.url`],
  ])("%s is refused", (page, problem) => {
    expect(problemTexts(withPages(page))).toContain(problem);
  });
});
