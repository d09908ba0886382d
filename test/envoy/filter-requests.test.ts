import { describe, expect, it } from "vitest";
import type { HeaderChange } from "../../core-wasm/binding/source.js";
import { answer, equals, header, hostRules, peers, prefix, route } from "../support/rules.js";
import { bundleFrom, upstream } from "./bundles.js";
import { filterWith, headerOf, PLAIN, TO_PLAIN, withHeaders } from "./filter-plugin.js";
import { ProxyWasmHost } from "./proxy-wasm-host.js";

describe("a request that is passed on", () => {
  it("goes to the cluster of its transport, and to the peer that the core has picked", () => {
    for (const [transport, cluster] of [
      [{ tls: false, protocol: "http" }, "njet_http"],
      [{ tls: true, protocol: "http" }, "njet_https"],
      [{ tls: false, protocol: "grpc" }, "njet_grpc"],
      [{ tls: true, protocol: "grpc" }, "njet_grpcs"],
    ] as const) {
      const { request, destination } = filterWith(TO_PLAIN, [upstream(peers("plain", [80]), transport)]).get("/a?b=c");
      expect(headerOf(request, "x-njet-cluster")).toBe(cluster);
      expect(destination).toBe("10.0.0.1:80");
      expect(headerOf(request, ":path")).toBe("/a?b=c");
    }
  });

  it("tells the peer by a header where the host has no state for it", () => {
    const { request } = filterWith(TO_PLAIN, [PLAIN], { isEnvoy: false }).get("/", [["x-njet-peer", "10.9.9.9:1"]]);
    expect(headerOf(request, "x-njet-peer")).toBe("10.0.0.1:80");
  });

  it("does not believe a client that names a cluster, a peer or a hash", () => {
    const forged: [string, string][] = [
      ["x-njet-cluster", "secret"],
      ["x-njet-peer", "10.9.9.9:1"],
      ["x-njet-hash", "7"],
    ];
    const { request } = filterWith(TO_PLAIN, [PLAIN], { options: "clusters=upstream" }).get("/", forged);
    expect(headerOf(request, "x-njet-cluster")).toBe("plain");
    expect(headerOf(request, "x-njet-peer")).toBe("10.0.0.1:80");
    expect(headerOf(request, "x-njet-hash")).toBeUndefined();
  });

  it("with clusters of upstreams names the upstream, the peer, and what the core has hashed", () => {
    const ring = upstream(peers("plain", [80, 81, 82], { kind: "ring", key: [header("x-user")] }));
    const { request } = filterWith(TO_PLAIN, [ring], { options: "clusters=upstream" }).get("/", [["x-user", "u1"]]);
    expect(headerOf(request, "x-njet-cluster")).toBe("plain");
    expect(headerOf(request, "x-njet-hash")).toMatch(/^\d+$/);
    expect(headerOf(request, "x-njet-peer")).toMatch(/^10\.0\.0\.1:8[012]$/);
  });

  it("has the rewritten path", () => {
    const { request } = filterWith({ ...TO_PLAIN, rewrite: { kind: "prefix", text: "/new/" } }).get("/old?x=1");
    expect(headerOf(request, ":path")).toBe("/new/old?x=1");
  });

  it("has the headers that the object sets, among them the host, and not those that it empties", () => {
    const { request } = filterWith(
      withHeaders(
        { op: "set-request", name: "X-User", value: ["<", header("x-a"), ">"] },
        { op: "set-request", name: "Host", value: ["inner.example.com"] },
        { op: "set-request", name: "X-Gone", value: [] },
      ),
    ).get("/", [
      ["x-a", "1"],
      ["x-user", "forged"],
      ["x-gone", "here"],
    ]);
    expect(headerOf(request, "x-user")).toBe("<1>");
    expect(headerOf(request, ":authority")).toBe("inner.example.com");
    expect(headerOf(request, "x-gone")).toBeUndefined();
  });

  it("has none of the client's headers where the object says so, but what frames it and what the object sets", () => {
    const { request } = filterWith(
      withHeaders({ op: "set-request", name: "X-Set", value: ["1"] }, { op: "drop-request" }),
    ).get("/", [
      ["accept", "*/*"],
      ["cookie", "a=b"],
      ["x-set", "0"],
      ["content-length", "3"],
      ["x-forwarded-for", "10.1.1.1"],
    ]);
    const names = request.map(([name]) => name).filter((name) => !name.startsWith(":"));
    expect(names.sort()).toEqual(["content-length", "x-forwarded-for", "x-njet-cluster", "x-set"]);
    expect(headerOf(request, "x-set")).toBe("1");
  });

  it("keeps its framing, its pseudo headers, and what steers Envoy, whatever an object sets", () => {
    const names = ["Connection", "Content-Length", "Transfer-Encoding", "X-Envoy-Retry-On", "X-Njet-Cluster", ":path"];
    const changes = names.map((name): HeaderChange => ({ op: "set-request", name, value: ["forged"] }));
    const { request } = filterWith(withHeaders(...changes)).get("/", [["content-length", "3"]]);
    expect(request.filter(([, value]) => value === "forged")).toEqual([]);
    expect(headerOf(request, "content-length")).toBe("3");
  });

  it("is decided by all values of a header that was sent several times", () => {
    const host = new ProxyWasmHost();
    const rules = route(prefix("/"), answer("other"), {
      matches: [{ conditions: [equals(header("x-role"), "user, admin")], outcome: answer("joined") }],
    });
    const plugin = host.configure(bundleFrom([hostRules([rules])])) ?? 0;
    const headers: [string, string][] = [
      [":authority", "example.com"],
      [":path", "/"],
      ["x-role", "user"],
      ["x-other", "1"],
      ["x-role", "admin"],
    ];
    expect(host.request(plugin, headers).answer?.body).toBe("joined");
    expect(host.request(plugin, headers.slice(0, 4)).answer?.body).toBe("other");
  });

  it("shows the core the client's address, the method and the protocol", () => {
    const told = answer(
      ...(["remote_addr", "remote_port", "request_method", "server_protocol"] as const).flatMap((name) => [
        { kind: "variable" as const, name },
        " ",
      ]),
    );
    const { host, get } = filterWith(told);
    host.properties = { "source.address": "[2001:db8::1]:4711", "request.protocol": "HTTP/2" };
    expect(get().answer?.body).toBe("2001:db8::1 4711 GET HTTP/2.0 ");
    host.properties = { "source.address": "192.0.2.1:80", "request.protocol": "HTTP/1.1" };
    expect(get().answer?.body).toBe("192.0.2.1 80 GET HTTP/1.1 ");
    host.properties = {};
    expect(get().answer?.body).toBe("  GET  ");
  });
});
