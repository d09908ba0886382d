import { describe, expect, it } from "vitest";
import { ingress, parseText, problemTexts, routesOf } from "./parse-support.js";

const PATH = "spec.rules[0].http.paths[0]";

describe("paths of an Ingress", () => {
  it.each([
    ["{path: /a/, pathType: Exact}", { kind: "exact", path: "/a/" }],
    ["{path: /a/, pathType: Prefix}", { kind: "segments", path: "/a" }],
    ["{path: /, pathType: Prefix}", { kind: "segments", path: "/" }],
    ["{path: /a, pathType: ImplementationSpecific}", { kind: "segments", path: "/a" }],
    ["{pathType: ImplementationSpecific}", { kind: "segments", path: "/" }],
  ])("%s are compared as the Kubernetes API says", (path, rule) => {
    expect(routesOf(parseText(ingress(path.slice(1, -1))))[0].path).toEqual(rule);
  });

  it.each([
    ["{pathType: Prefix}", `error FIELD_REQUIRED ${PATH}.path`],
    ["{path: '', pathType: Exact}", `error FIELD_REQUIRED ${PATH}.path`],
    ["{path: /a}", `error FIELD_REQUIRED ${PATH}.pathType`],
    ["{path: /a, pathType: prefix}", `error ENUM_INVALID ${PATH}.pathType`],
    ["{path: a, pathType: Prefix}", `error PATH_INVALID ${PATH}.path`],
    ["{path: /a//b, pathType: Prefix}", `error PATH_INVALID ${PATH}.path`],
    ["{path: /a/../b, pathType: Exact}", `error PATH_INVALID ${PATH}.path`],
    ["{path: /a%2Fb, pathType: Exact}", `error PATH_INVALID ${PATH}.path`],
    ['{path: "/a\\u0000b", pathType: Prefix}', `error TEXT_INVALID ${PATH}.path`],
    ["{path: /a/./b, pathType: ImplementationSpecific}", `warning PATH_UNREACHABLE ${PATH}.path`],
    ["{path: /a%20b, pathType: Prefix}", `warning PATH_UNREACHABLE ${PATH}.path`],
    ["{path: 7, pathType: Prefix}", `error FIELD_TYPE ${PATH}.path`],
  ])("%s are reported", (path, problem) => {
    expect(problemTexts(parseText(ingress(path.slice(1, -1))))).toEqual([problem]);
  });
});

describe("the annotation use-regex", () => {
  const on = "{nginx.ingress.kubernetes.io/use-regex: 'true'}";

  it("makes ImplementationSpecific paths patterns that are anchored and case-sensitive", () => {
    const [route] = routesOf(parseText(ingress("path: '/i/[0-9]+$', pathType: ImplementationSpecific", on)));
    expect(route.path).toEqual({ kind: "regex", pattern: "/i/[0-9]+$", ignoreCase: false, anchored: true });
  });

  it("leaves Exact and Prefix paths as plain text, and warns where one looks like a pattern", () => {
    const parsed = parseText(ingress("path: '/i/[0-9]+', pathType: Prefix", on));
    expect(routesOf(parsed)[0].path).toEqual({ kind: "segments", path: "/i/[0-9]+" });
    expect(problemTexts(parsed)).toEqual([`warning PATH_NOT_A_PATTERN ${PATH}.path`]);
  });

  it("acts under the name njet.org/use-regex too", () => {
    const parsed = parseText(ingress("path: /x, pathType: ImplementationSpecific", "{njet.org/use-regex: 'true'}"));
    expect(routesOf(parsed)[0].path.kind).toBe("regex");
  });

  it("is an error with any value but a boolean", () => {
    const parsed = parseText(ingress("path: /x, pathType: Prefix", "{njet.org/use-regex: 'yes'}"));
    expect(problemTexts(parsed)).toEqual(['error ANNOTATION_INVALID metadata.annotations["njet.org/use-regex"]']);
  });
});

describe("annotations without effect", () => {
  it.each([
    ["nginx.ingress.kubernetes.io/limit-rps", "ANNOTATION_NO_EFFECT"],
    ["nginx.org/rewrites", "ANNOTATION_NO_EFFECT"],
    ["nginx.com/jwt-key", "ANNOTATION_NO_EFFECT"],
    ["njet.org/no-such-thing", "ANNOTATION_NO_EFFECT"],
    ["nginx.ingress.kubernetes.io/configuration-snippet", "SNIPPET_REFUSED"],
    ["nginx.org/server-snippets", "SNIPPET_REFUSED"],
  ])("%s is a warning", (name, code) => {
    const parsed = parseText(ingress("path: /x, pathType: Prefix", `{${name}: 'x'}`));
    expect(problemTexts(parsed)).toEqual([`warning ${code} metadata.annotations["${name}"]`]);
  });

  it("of other families are no concern of this controller", () => {
    expect(parseText(ingress("path: /x, pathType: Prefix", "{cert-manager.io/issuer: x}")).problems).toEqual([]);
  });
});

describe("an Ingress as a whole", () => {
  const spec = (text: string) =>
    parseText(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: sample}, spec: ${text}}`);

  it("rejects a resource backend with a reason", () => {
    const parsed = spec("{defaultBackend: {resource: {kind: StorageBucket, name: b}}}");
    expect(problemTexts(parsed)).toEqual(["error RESOURCE_BACKEND spec.defaultBackend.resource"]);
    expect(parsed.problems[0].message).toContain("use service");
  });

  it("needs rules or a default backend", () => {
    expect(problemTexts(spec("{}"))).toEqual(["error FIELD_REQUIRED spec"]);
  });

  it("needs a port by number or by name, not both", () => {
    const parsed = spec("{defaultBackend: {service: {name: a, port: {number: 80, name: http}}}}");
    expect(problemTexts(parsed)).toEqual(["error FIELD_CONFLICT spec.defaultBackend.service.port"]);
  });

  it.each(["UPPER.example.com", "-a.example.com", "a..b", "*.*.b", "a.*.b", "10.0.0.1", "a_b.example.com", "a.b."])(
    "refuses the host %s",
    (host) => {
      const parsed = spec(`{rules: [{host: '${host}'}]}`);
      expect(problemTexts(parsed)).toEqual(["error HOST_INVALID spec.rules[0].host"]);
    },
  );

  it("of a removed API version is refused with the version to use", () => {
    const parsed = parseText(
      "{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: a}, spec: {rules: [{host: a.b}]}}",
    );
    expect(problemTexts(parsed)).toEqual(["error API_VERSION apiVersion"]);
    expect(parsed.problems[0].message).toContain("networking.k8s.io/v1");
  });

  it("reports every problem at once, and is not served by half", () => {
    const parsed = spec(
      "{rules: [{host: A}, {http: {paths: [{path: x, pathType: Prefix, backend: {service: {name: a, port: {}}}}]}}]}",
    );
    expect(problemTexts(parsed)).toEqual([
      "error HOST_INVALID spec.rules[0].host",
      "error PATH_INVALID spec.rules[1].http.paths[0].path",
      "error FIELD_CONFLICT spec.rules[1].http.paths[0].backend.service.port",
    ]);
    expect("fragment" in parsed && parsed.fragment).toBeUndefined();
  });

  it("takes tls entries without hosts for the hosts of its rules", () => {
    const parsed = spec("{rules: [{host: a.example.com}, {host: b.example.com}, {}], tls: [{secretName: cert}]}");
    const certificates = parsed.kind === "routing" ? parsed.fragment?.certificates : undefined;
    expect(certificates?.map(({ host, secret }) => `${host} ${secret}`)).toEqual([
      "a.example.com default/cert",
      "b.example.com default/cert",
    ]);
  });

  it("follows the class annotation before the field, and warns if they differ", () => {
    const parsed = parseText(
      "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, annotations: {kubernetes.io/ingress.class: one}}, spec: {ingressClassName: two, rules: [{host: a.b}]}}",
    );
    expect(parsed.kind === "routing" && parsed.className).toBe("one");
    expect(problemTexts(parsed)).toEqual([
      'warning CLASS_CONFLICT metadata.annotations["kubernetes.io/ingress.class"]',
    ]);
  });
});
