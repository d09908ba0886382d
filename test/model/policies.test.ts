import { describe, expect, it } from "vitest";
import { modelOfYaml, stateText } from "./model-support.js";

const server = (routes: string, more = "") => `
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: web}
spec:
  host: shop.example.com
  ${more}
  upstreams: [{name: app, service: web, port: 80}]
  routes: ${routes}
---`;

const PART = `
apiVersion: k8s.njet.org/v1
kind: VirtualServerRoute
metadata: {name: part}
spec:
  host: shop.example.com
  upstreams: [{name: app, service: web, port: 80}]
  subroutes:
    - {path: /part/open, action: {pass: app}}
    - {path: /part/closed, policies: [{name: admins}], action: {pass: app}}
---`;

/** What each path of the host does: `proxy`, or the status that it answers. */
function outcomes(text: string): Record<string, string | number> {
  const [rules] = modelOfYaml(text).snapshot().hosts.values();
  return Object.fromEntries(
    rules.routes.map(({ label, matches, outcome }) => {
      expect(outcome?.kind === "return" ? matches : []).toEqual([]);
      return [label, outcome?.kind === "return" ? outcome.status : (outcome?.kind ?? "none")];
    }),
  );
}

describe("policies do not act yet, and what they guard is never open:", () => {
  it("a route with policies answers 500, whatever its matches say, and the others are served", () => {
    const matches = "[{conditions: [{header: a, value: b}], action: {pass: app}}]";
    const text = server(`[{path: /, action: {pass: app}},
      {path: /admin, policies: [{name: admins}], matches: ${matches}, action: {pass: app}}]`);
    expect(outcomes(text)).toEqual({ "/": "proxy", "/admin": 500 });
    expect(stateText(modelOfYaml(text), "VirtualServer", "web")).toContain(
      "Warning AddedOrUpdatedWithWarning POLICY_NOT_ENFORCED@spec.routes[1].policies",
    );
  });

  it("a host with policies answers 500 on every route, delegated ones too", () => {
    const routes = "[{path: /, action: {pass: app}}, {path: /part, route: part}]";
    const text = server(routes, "policies: [{name: admins, namespace: team}]") + PART;
    expect(outcomes(text)).toEqual({ "/": 500, "/part/open": 500, "/part/closed": 500 });
    expect(stateText(modelOfYaml(text), "VirtualServer", "web")).toBe(
      "Warning AddedOrUpdatedWithWarning POLICY_NOT_ENFORCED@spec.policies",
    );
  });

  it("a delegation with policies answers 500 on all that it delegates", () => {
    const text = server("[{path: /, action: {pass: app}}, {path: /part, policies: [{name: a}], route: part}]") + PART;
    expect(outcomes(text)).toEqual({ "/": "proxy", "/part/open": 500, "/part/closed": 500 });
  });

  it("a subroute with policies answers 500", () => {
    expect(outcomes(server("[{path: /part, route: part}]") + PART)).toEqual({
      "/part/open": "proxy",
      "/part/closed": 500,
    });
  });

  it("an empty list guards nothing", () => {
    expect(outcomes(server("[{path: /, policies: [], action: {pass: app}}]", "policies: []"))).toEqual({
      "/": "proxy",
    });
  });
});
