import { describe, expect, it } from "vitest";
import { changeOf, modelOf, modelOfYaml, parseYaml, removalOf, stateText } from "./model-support.js";

const server = (routes: string, more = "") => `
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: shop}
spec: {host: shop.example.com, routes: ${routes}${more}}
---`;

const part = (subroutes: string, host = "shop.example.com", name = "part") => `
apiVersion: k8s.njet.org/v1
kind: VirtualServerRoute
metadata: {name: ${name}}
spec: {host: ${host}, subroutes: ${subroutes}}
---`;

const answer = "action: {return: {body: x}}";

function routes(text: string): string[] {
  const rules = modelOfYaml(text).snapshot().hosts.get("shop.example.com");
  return (rules?.routes ?? []).map(
    ({ label, resource, outcome }) =>
      `${label} ${resource.split("/")[0]} ${outcome?.kind === "return" ? outcome.status : outcome?.kind}`,
  );
}

describe("a delegated path", () => {
  it("is served by the subroutes, which stand in the place of the delegation", () => {
    const text =
      server(`[{path: ~ ^/a, ${answer}}, {path: /b, route: part}, {path: ~ ^/c, ${answer}}]`) +
      part(`[{path: /b/1, ${answer}}, {path: =/b/2, ${answer}}]`);
    expect(routes(text)).toEqual([
      "~ ^/a VirtualServer 200",
      "/b/1 VirtualServerRoute 200",
      "=/b/2 VirtualServerRoute 200",
      "~ ^/c VirtualServer 200",
    ]);
  });

  it("answers 503 while its VirtualServerRoute is missing, and does not fall through to a shorter path", () => {
    const text = server(`[{path: /, ${answer}}, {path: /b, route: part}]`);
    expect(routes(text)).toEqual(["/ VirtualServer 200", "/b VirtualServer 503"]);
    expect(stateText(modelOfYaml(text), "VirtualServer", "shop")).toBe(
      "Warning AddedOrUpdatedWithWarning ROUTE_MISSING@spec.routes[1].route",
    );
  });

  it.each([
    ["is invalid", part("[{path: /b}]"), "Invalid Rejected FIELD_CONFLICT@spec.subroutes[0]"],
    [
      "has another host",
      part(`[{path: /b, ${answer}}]`, "other.example.com"),
      "Warning NoVirtualServerFound ROUTE_NOT_REFERENCED@",
    ],
    [
      "has a subroute outside of the path",
      part(`[{path: /b, ${answer}}, {path: /x, ${answer}}]`),
      "Invalid Rejected SUBROUTE_OUTSIDE@spec.subroutes[1].path ROUTE_NOT_REFERENCED@",
    ],
    [
      "has a regex below a prefix",
      part(`[{path: ~ ^/b, ${answer}}]`),
      "Invalid Rejected SUBROUTE_OUTSIDE@spec.subroutes[0].path ROUTE_NOT_REFERENCED@",
    ],
  ])("answers 503 while its VirtualServerRoute %s", (_title, text, state) => {
    const whole = server("[{path: /b, route: part}]") + text;
    expect(routes(whole)).toEqual(["/b VirtualServer 503"]);
    const model = modelOfYaml(whole);
    expect(stateText(model, "VirtualServerRoute", "part")).toBe(state);
    expect(stateText(model, "VirtualServer", "shop")).toMatch(/^Warning AddedOrUpdatedWithWarning /);
  });

  it.each([
    ["=/b", "=/b", true],
    ["=/b", "/b", false],
    ["~ ^/b", "~ ^/b", true],
    ["~ ^/b", "~* ^/b", false],
    ["/b", "^~ /b/c", true],
  ])("%s may hold the subroute %s: %s", (delegated, subroute, allowed) => {
    const text = server(`[{path: '${delegated}', route: part}]`) + part(`[{path: '${subroute}', ${answer}}]`);
    expect(routes(text)[0].endsWith("VirtualServerRoute 200")).toBe(allowed);
  });

  it("comes to life when its VirtualServerRoute comes, and answers 503 again when it goes", () => {
    const [shop, route] = parseYaml(server("[{path: /b, route: part}]") + part(`[{path: /b, ${answer}}]`));
    const model = modelOf([shop]);
    const added = model.update([changeOf(route)]);
    expect(added.hosts.get("shop.example.com")?.routes[0].resource).toBe("VirtualServerRoute/default/part");
    expect([...added.objects].sort()).toEqual(["VirtualServer/default/shop", "VirtualServerRoute/default/part"]);
    const removed = model.update([removalOf(route)]);
    expect(removed.hosts.get("shop.example.com")?.routes[0].resource).toBe("VirtualServer/default/shop");
  });
});

describe("a VirtualServerRoute", () => {
  it("that nobody delegates to is found to have no VirtualServer", () => {
    expect(stateText(modelOfYaml(part("[]")), "VirtualServerRoute", "part")).toBe(
      "Warning NoVirtualServerFound ROUTE_NOT_REFERENCED@",
    );
  });

  it("loses a path that stands earlier in the VirtualServer", () => {
    const text =
      server(`[{path: /b/1, ${answer}}, {path: /b, route: part}]`) +
      part(`[{path: /b/1, ${answer}}, {path: /b/2, ${answer}}]`);
    expect(routes(text)).toEqual(["/b/1 VirtualServer 200", "/b/2 VirtualServerRoute 200"]);
    expect(stateText(modelOfYaml(text), "VirtualServerRoute", "part")).toBe(
      "Warning Rejected PATH_TAKEN@spec.subroutes[0].path",
    );
  });

  it("uses services of its own namespace", () => {
    const [shop, route] = parseYaml(
      server("[{path: /b, route: team/part}]") +
        part("[{path: /b, action: {pass: app}}]").replace("name: part", "name: part, namespace: team"),
    );
    const withUpstream = {
      ...route,
      spec: { ...(route.spec as object), upstreams: [{ name: "app", service: "s", port: 80 }] },
    };
    const { upstreams } = modelOf([shop, withUpstream]).snapshot();
    expect([...upstreams].map(([key, { peers }]) => `${key} ${peers.display}`)).toEqual([
      "VirtualServerRoute/team/part/app team/s:80",
    ]);
  });
});
