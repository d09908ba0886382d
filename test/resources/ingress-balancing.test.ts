import { describe, expect, it } from "vitest";
import type { Balancing } from "../../controller/resources/fragments.js";
import { ingress, parseText, problemTexts } from "./parse-support.js";

const parse = (annotations: string) => parseText(ingress("path: /, pathType: Prefix", `{${annotations}}`));

function balancingOf(annotations: string): Balancing | undefined {
  const parsed = parse(annotations);
  return parsed.kind === "routing" ? parsed.fragment?.upstreams[0].balancing : undefined;
}

/** Problems as `severity code annotation`. */
const problemsOf = (annotations: string) =>
  problemTexts(parse(annotations)).map((text) => text.replace(/metadata\.annotations\["(.*)"\]/, "$1"));

const DEFAULT = { method: { kind: "round-robin" }, limits: { maxFails: 1, failTimeout: 10_000 } };

describe("balancing annotations of an Ingress", () => {
  it("are not needed: NGINX's defaults hold", () => {
    expect(balancingOf("")).toEqual(DEFAULT);
  });

  it.each(["njet.org/", "nginx.org/"])("with the prefix %s say method and limits", (prefix) => {
    const annotations = `${prefix}lb-method: least_conn, ${prefix}max-fails: '3', ${prefix}fail-timeout: 30s, ${prefix}max-conns: '7'`;
    expect(balancingOf(annotations)).toEqual({
      method: { kind: "least-conn" },
      limits: { maxFails: 3, failTimeout: 30_000, maxConns: 7 },
    });
    expect(problemsOf(annotations)).toEqual([]);
  });

  it.each(["njet.org/slow-start", "nginx.com/slow-start"])("%s says how long a peer rises", (name) => {
    expect(balancingOf(`${name}: 20s`)?.limits.slowStart).toBe(20_000);
  });

  it("hold for every upstream of the object", () => {
    const parsed = parseText(`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a,
      annotations: {njet.org/lb-method: 'chash $uri'}}, spec: {
      defaultBackend: {service: {name: one, port: {number: 80}}},
      rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: two, port: {number: 80}}}}]}}]}}`);
    const upstreams = parsed.kind === "routing" ? parsed.fragment?.upstreams : undefined;
    expect(upstreams?.map(({ balancing }) => balancing.method.kind)).toEqual(["ring", "ring"]);
  });

  it("of our own go before the alias, and a differing alias is a warning", () => {
    const differing = "nginx.org/lb-method: ip_hash, njet.org/lb-method: least_conn";
    expect(balancingOf(differing)?.method.kind).toBe("least-conn");
    expect(problemsOf(differing)).toEqual(["warning ANNOTATION_NO_EFFECT nginx.org/lb-method"]);
    expect(problemsOf("nginx.org/lb-method: ip_hash, njet.org/lb-method: ip_hash")).toEqual([]);
  });

  it.each([
    ["njet.org/lb-method", "fastest"],
    ["nginx.org/lb-method", "chash $nope"],
    ["njet.org/max-fails", "many"],
    ["njet.org/max-fails", ""],
    ["njet.org/max-conns", "-1"],
    ["njet.org/fail-timeout", "10 seconds"],
    ["nginx.com/slow-start", "x"],
    ["njet.org/health-checks", "yes"],
    ["nginx.com/health-checks", "on"],
  ])("%s: %j is a warning of its own, and the default is used", (name, value) => {
    expect(balancingOf(`${name}: '${value}'`)).toEqual(DEFAULT);
    expect(problemsOf(`${name}: '${value}'`)).toEqual([`warning ANNOTATION_INVALID ${name}`]);
  });

  it("that are no texts are a warning too", () => {
    expect(problemsOf("njet.org/max-fails: 3")).toEqual(["warning ANNOTATION_INVALID njet.org/max-fails"]);
  });

  it("without effect are a warning", () => {
    expect(problemsOf("njet.org/lb-method: ip_hash, nginx.com/slow-start: 5s")).toEqual([
      "warning ANNOTATION_NO_EFFECT nginx.com/slow-start",
    ]);
    expect(problemsOf("njet.org/max-fails: '0', njet.org/fail-timeout: 5s")).toEqual([
      "warning ANNOTATION_NO_EFFECT njet.org/fail-timeout",
    ]);
  });

  it("leave two Ingress objects that name one service apart", () => {
    expect(balancingOf("njet.org/lb-method: ip_hash")).not.toEqual(balancingOf("njet.org/lb-method: random"));
  });
});

describe("health check annotations of an Ingress", () => {
  it.each(["njet.org/health-checks: 'true'", "nginx.com/health-checks: '1'"])("%s asks for / every 5 s", (on) => {
    expect(balancingOf(on)?.healthCheck).toMatchObject({
      type: "http",
      path: "/",
      interval: 5000,
      fails: 1,
      passes: 1,
    });
    expect(problemsOf(on)).toEqual([]);
  });

  it("describe the check", () => {
    const annotations = `njet.org/health-checks: 'true', njet.org/health-check-path: /up, njet.org/health-check-port: '8081',
      njet.org/health-check-interval: 2s, njet.org/health-check-fails: '3', njet.org/health-check-passes: '2',
      njet.org/health-check-status-match: 200-299, njet.org/health-check-panic: 'true'`;
    expect(problemsOf(annotations)).toEqual([]);
    expect(balancingOf(annotations)).toMatchObject({
      limits: { panic: true },
      healthCheck: {
        type: "http",
        path: "/up",
        port: 8081,
        interval: 2000,
        fails: 3,
        passes: 2,
        statusMatch: { negated: false, ranges: [{ from: 200, to: 299 }] },
      },
    });
  });

  it.each(["http", "grpc", "tcp"])("may be of type %s", (type) => {
    const annotations = `njet.org/health-checks: 'true', njet.org/health-check-type: ${type}`;
    expect(balancingOf(annotations)?.healthCheck?.type).toBe(type);
  });

  it("keep traffic off until the first pass where that is mandatory", () => {
    const annotations = "nginx.com/health-checks: 'true', nginx.com/health-checks-mandatory: 'true'";
    expect(balancingOf(annotations)?.limits.mandatory).toBe(true);
    expect(problemsOf(annotations)).toEqual([]);
  });

  it("give a queue of 60 s where peers have a limit", () => {
    const mandatory =
      "nginx.com/health-checks: 'true', nginx.com/health-checks-mandatory: 'true', nginx.com/health-checks-mandatory-queue: '50'";
    expect(balancingOf(`${mandatory}, nginx.org/max-conns: '5'`)?.queue).toEqual({ size: 50, timeout: 60_000 });
    expect(problemsOf(mandatory)).toEqual(["warning ANNOTATION_NO_EFFECT nginx.com/health-checks-mandatory-queue"]);
  });

  it("have no effect while checks are not switched on, and a warning says so", () => {
    expect(balancingOf("njet.org/health-check-path: /up")).toEqual(DEFAULT);
    expect(problemsOf("njet.org/health-check-path: /up, nginx.com/health-checks-mandatory: 'true'")).toEqual([
      "warning ANNOTATION_NO_EFFECT nginx.com/health-checks-mandatory",
      "warning ANNOTATION_NO_EFFECT njet.org/health-check-path",
    ]);
    expect(problemsOf("njet.org/health-checks: 'false', njet.org/health-check-path: /up")).toEqual([]);
  });

  it("that the type does not look at are a warning", () => {
    const annotations =
      "njet.org/health-checks: 'true', njet.org/health-check-type: tcp, njet.org/health-check-path: /up";
    expect(problemsOf(annotations)).toEqual(["warning ANNOTATION_NO_EFFECT njet.org/health-check-path"]);
  });

  it.each([
    ["path", "up"],
    ["port", "http"],
    ["port", "0"],
    ["interval", "0s"],
    ["fails", "0"],
    ["passes", "x"],
    ["type", "udp"],
    ["status-match", "2xx"],
    ["panic", "maybe"],
  ])("health-check-%s: %j is a warning, and the rest of the check holds", (name, value) => {
    const annotations = `njet.org/health-checks: 'true', njet.org/health-check-${name}: '${value}'`;
    expect(problemsOf(annotations)).toEqual([`warning ANNOTATION_INVALID njet.org/health-check-${name}`]);
    expect(balancingOf(annotations)).toEqual(balancingOf("njet.org/health-checks: 'true'"));
  });
});
