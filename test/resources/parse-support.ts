import { parse as parseYaml } from "yaml";
import { type Kind, recogniseKind } from "../../controller/resources/object-ref.js";
import { type ParsedObject, parseObject } from "../../controller/resources/parse-object.js";
import { patternChecker } from "../support/core.js";

/** Parses one object written in YAML. */
export function parseText(text: string): ParsedObject {
  const object = parseYaml(text) as { apiVersion: string; kind: string; metadata: { name: string } };
  return parseValue(recogniseKind(object.apiVersion, object.kind)!, object);
}

/** Parses any value as an object of a kind. */
export function parseValue(kind: Kind, value: unknown): ParsedObject {
  const context = { checker: patternChecker() };
  return parseObject({ kind, namespace: "default", name: "sample" }, value, context);
}

/** Problems as `severity code path`. */
export function problemTexts(parsed: ParsedObject): string[] {
  return parsed.problems.map(({ severity, code, path }) => `${severity} ${code} ${path}`);
}

/** A VirtualServer with one upstream `app` and the given routes (YAML, a list) and further lines of the spec. */
export function virtualServer(routes: string, more = ""): string {
  return `
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: sample, namespace: default}
spec:
  host: shop.example.com
  upstreams: [{name: app, service: app-svc, port: 80}]
  routes: ${routes}
${more.replace(/^/gm, "  ")}`;
}

/** An Ingress with one path of the host shop.example.com; `path` is a YAML map without its backend. */
export function ingress(path: string, annotations = "{}"): string {
  return `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: sample, namespace: default, annotations: ${annotations}}
spec:
  rules:
    - host: shop.example.com
      http: {paths: [{backend: {service: {name: app, port: {number: 80}}}, ${path}}]}`;
}

/** The routes of a parsed Ingress or VirtualServer. */
export function routesOf(parsed: ParsedObject) {
  if (parsed.kind !== "routing" || parsed.fragment === undefined) throw new Error(JSON.stringify(parsed.problems));
  const { fragment } = parsed;
  if (fragment.kind === "Ingress") return fragment.rules.flatMap(({ routes }) => routes.map(({ route }) => route));
  if (fragment.kind === "VirtualServerRoute") return fragment.subroutes.map(({ route }) => route);
  return fragment.entries.flatMap((entry) => (entry.kind === "own" ? [entry.route] : []));
}
