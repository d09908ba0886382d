import { describe, expect, it } from "vitest";
import { parseDuration, parseSize } from "../../controller/resources/units.js";
import { parseText, problemTexts } from "./parse-support.js";

const parseUpstream = (fields: string) =>
  parseText(`{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: sample},
    spec: {host: a.b, upstreams: [{name: app, service: app-svc, port: 80, ${fields}}]}}`);

function upstreamOf(fields: string) {
  const parsed = parseUpstream(fields);
  return parsed.kind === "routing" ? parsed.fragment?.upstreams[0] : undefined;
}

describe("an upstream", () => {
  it("has an identity of its own and shows its service", () => {
    expect(upstreamOf("")).toMatchObject({
      key: "VirtualServer/default/sample/app",
      display: "default/app-svc:80",
      service: "default/app-svc",
      port: 80,
    });
  });

  it("carries times in milliseconds and sizes in bytes to the proxy", () => {
    const fields = `connect-timeout: 500ms, read-timeout: 1m30s, send-timeout: '5', next-upstream: error timeout http_502,
      next-upstream-timeout: '0', next-upstream-tries: 3, client-max-body-size: 8m, tls: {enable: true}`;
    expect(upstreamOf(fields)?.transport).toEqual({
      tls: true,
      protocol: "http",
      connectTimeout: 500,
      readTimeout: 90_000,
      sendTimeout: 5000,
      nextUpstream: ["error", "timeout", "http_502"],
      nextUpstreamTimeout: 0,
      nextUpstreamTries: 3,
      clientMaxBodySize: 8 * 1024 * 1024,
    });
    expect(parseUpstream(fields).problems).toEqual([]);
  });

  it("with next-upstream off never tries another peer", () => {
    expect(upstreamOf("next-upstream: 'off'")?.transport.nextUpstream).toEqual([]);
  });

  it.each([
    ["name: App", "DUPLICATE"],
    ["port: 0", "NUMBER_RANGE"],
    ["port: '80'", "FIELD_TYPE"],
    ["service: a_b", "NAME_INVALID"],
    ["service: other/more/app", "NAME_INVALID"],
    ["connect-timeout: 5x", "DURATION_INVALID"],
    ["connect-timeout: '0'", "DURATION_INVALID"],
    ["read-timeout: 60d", "DURATION_INVALID"],
    ["client-max-body-size: 1t", "SIZE_INVALID"],
    ["next-upstream: error http_999", "ENUM_INVALID"],
    ["healthCheck: {enable: true, statusMatch: '2xx'}", "STATUS_INVALID"],
    ["healthCheck: {persistent: true}", "FIELD_CONFLICT"],
    ["healthCheck: {interval: 0s}", "DURATION_INVALID"],
    ["sessionCookie: {enable: true}", "FIELD_REQUIRED"],
    ["queue: {timeout: 5s}", "FIELD_REQUIRED"],
    ["backup: spare", "FIELD_CONFLICT"],
    ["type: fastcgi", "ENUM_INVALID"],
  ])("with %s is an error", (fields, code) => {
    const duplicated = code === "DUPLICATE";
    const text = `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: sample},
      spec: {host: a.b, upstreams: [{${["name: app", "service: app-svc", "port: 80"]
        .filter((field) => !fields.startsWith(field.slice(0, field.indexOf(":") + 1)))
        .concat(fields)
        .join(", ")}}]}}`;
    const errors = parseText(text).problems.filter(({ severity }) => severity === "error");
    expect(errors.map((problem) => problem.code)).toEqual([duplicated ? "NAME_INVALID" : code]);
  });

  it("cannot have the name of another one", () => {
    const parsed = parseText(`{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: sample},
      spec: {host: a.b, upstreams: [{name: a, service: s, port: 1}, {name: a, service: t, port: 2}]}}`);
    expect(problemTexts(parsed)).toEqual(["error DUPLICATE_NAME spec.upstreams[1].name"]);
  });

  it.each([
    "subselector: {v: a}",
    "keepalive: 16",
    "buffering: false",
    "use-cluster-ip: true",
    "type: grpc",
    "next-upstream: error http_500",
  ])("with %s is served, with the warning that this does not act yet", (fields) => {
    expect(parseUpstream(fields).problems.map(({ severity, code }) => `${severity} ${code}`)).toEqual([
      "warning NOT_YET_ACTIVE",
    ]);
  });

  it("with backup and backupPort is served, with the warning that this does not act yet", () => {
    expect(problemTexts(parseUpstream("backup: spare, backupPort: 80"))).toEqual([
      "warning NOT_YET_ACTIVE spec.upstreams[0].backup",
    ]);
  });
});

describe("times", () => {
  it.each([
    ["5", 5000],
    ["5s", 5000],
    ["500ms", 500],
    ["1m30s", 90_000],
    ["1h 30m", 5_400_000],
    ["1d2h", 93_600_000],
    ["1y", 31_536_000_000],
  ])("%s", (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each(["", " ", "s", "5x", "-1s", "1.5s", "30s1m", "5s5s", "1 h", "٥s"])("refuse %j", (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe("sizes", () => {
  it.each([
    ["0", 0],
    ["512", 512],
    ["8k", 8192],
    ["8K", 8192],
    ["1m", 1_048_576],
    ["2g", 2_147_483_648],
  ])("%s", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });

  it.each(["", "k", "-1", "1.5m", "1mb", "0x10"])("refuse %j", (text) => {
    expect(parseSize(text)).toBeUndefined();
  });
});
