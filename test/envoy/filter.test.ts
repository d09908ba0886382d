import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { sessionCookieText } from "../../controller/proxies/embedded/session-cookie.js";
import { type BundleRecord, readBundle, writeBundle } from "../../core-wasm/binding/bundle.js";
import type { Action, HeaderChange } from "../../core-wasm/binding/source.js";
import { packBundle } from "../../core-wasm/hosts/envoy/packing.js";
import { FEATURE_PEERS, FEATURE_RULES } from "../core/feature-tables.js";
import { answer, equals, header, hostRules, peers, prefix, route } from "../support/rules.js";
import { bundleFrom, resealed, upstream } from "./bundles.js";
import { FILTER, type HostOptions, ProxyWasmHost, type Stream } from "./proxy-wasm-host.js";

const TO_PLAIN: Action = { kind: "proxy", upstream: "plain" };
const PLAIN = upstream(peers("plain", [80]));

/** A plugin of the filter with one action for every path of example.com. */
function filterWith(action: Action, upstreams = [PLAIN], options: HostOptions = {}) {
  const host = new ProxyWasmHost(options);
  const plugin = host.configure(bundleFrom([hostRules([route(prefix("/"), action)])], upstreams));
  if (plugin === undefined) throw new Error(host.logged.join("; "));
  const get = (path = "/", headers: [string, string][] = []): Stream =>
    host.request(plugin, [
      [":authority", "example.com"],
      [":path", path],
      [":method", "GET"],
      [":scheme", "http"],
      ...headers,
    ]);
  return { host, plugin, get };
}

function headerOf(pairs: readonly [string, string][], name: string): string | undefined {
  const values = pairs.filter(([other]) => other === name).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(" | ");
}

function withHeaders(...headers: HeaderChange[]): Action {
  return { ...TO_PLAIN, headers };
}

describe("the filter", () => {
  it("imports functions of proxy-wasm and nothing else, and no more of them than it needs", () => {
    const imports = WebAssembly.Module.imports(new WebAssembly.Module(readFileSync(FILTER)));
    expect(imports.filter(({ module, kind }) => module !== "env" || kind !== "function")).toEqual([]);
    expect(imports.map(({ name }) => name).sort()).toMatchInlineSnapshot(`
      [
        "proxy_add_header_map_value",
        "proxy_call_foreign_function",
        "proxy_get_buffer_bytes",
        "proxy_get_current_time_nanoseconds",
        "proxy_get_header_map_pairs",
        "proxy_get_header_map_value",
        "proxy_get_property",
        "proxy_log",
        "proxy_remove_header_map_value",
        "proxy_replace_header_map_value",
        "proxy_send_local_response",
      ]
    `);
  });

  it("exports the callbacks of ABI 0.2.1 that it has, and its memory", () => {
    const exports = WebAssembly.Module.exports(new WebAssembly.Module(readFileSync(FILTER)));
    expect(exports.map(({ name }) => name).sort()).toEqual([
      "_initialize",
      "memory",
      "proxy_abi_version_0_2_1",
      "proxy_on_configure",
      "proxy_on_context_create",
      "proxy_on_delete",
      "proxy_on_memory_allocate",
      "proxy_on_request_headers",
      "proxy_on_response_headers",
      "proxy_on_vm_start",
    ]);
  });
});

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

describe("an answer of the filter", () => {
  it("is a redirect, with the headers that the object adds", () => {
    const { answer } = filterWith({
      kind: "redirect",
      status: 308,
      location: ["https://", { kind: "variable", name: "host" }, { kind: "variable", name: "request_uri" }],
      headers: [{ op: "add-response", name: "X-Added", value: ["1"], always: false }],
    }).get("/a?b");
    expect(answer).toEqual({
      status: 308,
      headers: [
        ["x-added", "1"],
        ["location", "https://example.com/a?b"],
      ],
      body: "",
    });
  });

  it("is a body with its type", () => {
    const { answer: given } = filterWith({ ...answer("hello ", header("x-a")), status: 418 }).get("/", [
      ["x-a", "you"],
    ]);
    expect(given).toEqual({ status: 418, headers: [["content-type", "text/plain"]], body: "hello you" });
  });

  it("is 400, 404 or 503 as the core decides, for Envoy to show its own page", () => {
    const { host, plugin, get } = filterWith({ kind: "proxy", upstream: "absent" });
    expect(get("/").answer).toEqual({ status: 503, headers: [], body: "" });
    expect(get("/%zz").answer?.status).toBe(400);
    expect(
      host.request(plugin, [
        [":authority", "elsewhere.test"],
        [":path", "/"],
      ]).answer?.status,
    ).toBe(404);
  });

  it("is 414 where host and target are too long for the core", () => {
    expect(filterWith(TO_PLAIN).get(`/${"a".repeat(65_536)}`).answer?.status).toBe(414);
  });

  it("is the error page of the object where the core finds no peer", () => {
    const { get } = filterWith({
      kind: "proxy",
      upstream: "absent",
      errorPages: [
        {
          codes: [502, 503],
          kind: "return",
          status: 200,
          contentType: "text/html",
          body: ["sorry ", { kind: "variable", name: "uri" }],
          headers: [{ op: "add-response", name: "X-Page", value: ["1"], always: true }],
        },
      ],
    });
    expect(get("/a").answer).toEqual({
      status: 200,
      headers: [
        ["content-type", "text/html"],
        ["x-page", "1"],
      ],
      body: "sorry /a",
    });
  });
});

describe("an answer of a peer", () => {
  const FROM_PEER = { "response.code_details": "via_upstream" };

  it("gets and loses the headers that the object says", () => {
    const { host, get } = filterWith(
      withHeaders(
        { op: "add-response", name: "X-Plain", value: [header("x-a")], always: false },
        { op: "add-response", name: "X-Always", value: ["1"], always: true },
        { op: "hide-response", name: "X-Powered-By" },
      ),
    );
    host.properties = FROM_PEER;
    for (const status of [200, 500]) {
      const stream = get("/", [["x-a", `of ${status}`]]);
      host.respond(stream, [
        [":status", String(status)],
        ["x-powered-by", "something"],
        ["x-kept", "1"],
      ]);
      expect(headerOf(stream.response, "x-plain")).toBe(status === 200 ? "of 200" : undefined);
      expect(headerOf(stream.response, "x-always")).toBe("1");
      expect(headerOf(stream.response, "x-powered-by")).toBeUndefined();
      expect(headerOf(stream.response, "x-kept")).toBe("1");
    }
  });

  it("has the values of its own request, also when other requests came between", () => {
    const { host, get } = filterWith(
      withHeaders({ op: "add-response", name: "X-Echo", value: [header("x-a")], always: false }),
    );
    host.properties = FROM_PEER;
    const streams = Array.from({ length: 100 }, (_, i) => get("/", [["x-a", String(i)]]));
    for (const [i, stream] of streams.entries()) {
      host.respond(stream, [[":status", "200"]]);
      expect(headerOf(stream.response, "x-echo")).toBe(String(i));
      host.end(stream.id);
    }
  });

  it("is replaced by the error page that lists its status, and by no other", () => {
    const { host, get } = filterWith({
      ...TO_PLAIN,
      errorPages: [
        { codes: [404], kind: "redirect", status: 302, location: ["/lost?", { kind: "variable", name: "uri" }] },
        { codes: [404, 500], kind: "return", contentType: "text/plain", body: ["broken"] },
      ],
    });
    host.properties = FROM_PEER;
    const answerTo = (status: string) => {
      const stream = get("/a");
      host.respond(stream, [[":status", status]]);
      return stream.answer;
    };
    expect(answerTo("404")).toEqual({ status: 302, headers: [["location", "/lost?/a"]], body: "" });
    expect(answerTo("500")).toEqual({ status: 500, headers: [["content-type", "text/plain"]], body: "broken" });
    expect(answerTo("502")).toBeUndefined();
  });

  it("that Envoy gives in the peer's place has the error page, and no headers that are for answers of peers", () => {
    const { host, get } = filterWith({
      ...withHeaders({ op: "add-response", name: "X-Always", value: ["1"], always: true }),
      errorPages: [{ codes: [503], kind: "return", contentType: "text/plain", body: ["no peer"] }],
    } as Action);
    host.properties = { "response.code_details": "upstream_reset_before_response_started{connection_failure}" };
    const refused = get();
    host.respond(refused, [[":status", "503"]]);
    expect(refused.answer?.body).toBe("no peer");
    const late = get();
    host.respond(late, [[":status", "504"]]);
    expect(late.response).toEqual([[":status", "504"]]);
  });

  it("brings the session cookie to a client that needs it, as the embedded proxy writes it", () => {
    const cookie = {
      ...{ name: "njet", path: "/shop", domain: "example.com", httpOnly: true, secure: true, sameSite: "Lax" as const },
      expires: 3_600_000,
    };
    const now = Date.UTC(2028, 1, 29, 23, 30);
    const sticky = upstream(peers("plain", [80, 81]), { sessionCookie: cookie });
    const { host, get } = filterWith(TO_PLAIN, [sticky], { now: () => now });
    host.properties = FROM_PEER;
    const stream = get();
    host.respond(stream, [[":status", "200"]]);
    const given = headerOf(stream.response, "set-cookie") ?? "";
    const session = /^njet=([0-9a-f]{8});/.exec(given)?.[1] ?? "";
    expect(given).toBe(sessionCookieText(cookie, session, now));
    for (let i = 0; i < 10; i++) expect(get("/", [["cookie", `njet=${session}`]]).destination).toBe(stream.destination);
  });

  it("brings a cookie that never expires, or ends with the browser, only once", () => {
    for (const expires of ["max", undefined] as const) {
      const cookie = { name: "njet", httpOnly: false, secure: false, expires };
      const { host, get } = filterWith(TO_PLAIN, [upstream(peers("plain", [80]), { sessionCookie: cookie })]);
      host.properties = FROM_PEER;
      const first = get();
      host.respond(first, [[":status", "200"]]);
      const given = headerOf(first.response, "set-cookie") ?? "";
      expect(given).toBe(sessionCookieText(cookie, given.slice(5, 13), 0));
      const second = get("/", [["cookie", given.slice(0, 13)]]);
      host.respond(second, [[":status", "200"]]);
      expect(second.response).toEqual([[":status", "200"]]);
    }
  });
});

describe("peers", () => {
  it("are counted until their requests end, also those that end without an answer", () => {
    const set = upstream({ ...peers("plain", [80, 81]), limits: { maxConns: 1 } });
    const { host, get } = filterWith(TO_PLAIN, [set]);
    const [first, second] = [get(), get()];
    expect(new Set([first.destination, second.destination]).size).toBe(2);
    expect(get().answer?.status).toBe(502);
    host.end(first.id);
    expect(get().destination).toBe(first.destination);
  });

  it("are out for a while after as many failures as they may have", () => {
    let now = 1_000_000;
    const set = upstream({ ...peers("plain", [80, 81]), limits: { maxFails: 1, failTimeout: 10_000 } });
    const { host, get } = filterWith(TO_PLAIN, [set], { now: () => now });
    host.properties = { "response.code_details": "upstream_reset_before_response_started{connection_timeout}" };
    const failed = get();
    host.respond(failed, [[":status", "503"]]);
    host.end(failed.id);
    host.properties = { "response.code_details": "via_upstream" };
    const others = Array.from({ length: 6 }, () => {
      const stream = get();
      host.respond(stream, [[":status", "200"]]);
      host.end(stream.id);
      return stream.destination;
    });
    expect(others).not.toContain(failed.destination);
    now += 20_000;
    const later = Array.from({ length: 6 }, () => get().destination);
    expect(later).toContain(failed.destination);
  });
});

describe("what Envoy answers in the place of a peer", () => {
  const set = upstream({ ...peers("plain", [80, 81]), limits: { maxFails: 1, failTimeout: 10_000 } });
  const RESET = "upstream_reset_before_response_started";

  /** True if the peer is left out after such an answer. */
  function takesOut(details: string, status: string): boolean {
    const { host, get } = filterWith(TO_PLAIN, [set], { now: () => 1_000_000 });
    host.properties = { "response.code_details": details };
    const first = get();
    host.respond(first, [[":status", status]]);
    host.end(first.id);
    return !Array.from({ length: 4 }, () => get().destination).includes(first.destination);
  }

  it.each([
    [`${RESET}{connection_timeout}`, "503"],
    [`${RESET}{remote_connection_failure|delayed_connect_error:_Connection_refused}`, "503"],
    [`${RESET}{connection_termination}`, "503"],
    ["upstream_response_timeout", "504"],
    ["upstream_per_try_timeout", "504"],
    ["no_healthy_upstream", "503"],
    ["stream_idle_timeout", "504"],
  ])("is a failure of the peer where it is for %s with %s", (details, status) => {
    expect(takesOut(details, status)).toBe(true);
  });

  it.each([
    ["stream_idle_timeout", "408"],
    ["upstream_max_stream_duration_reached", "408"],
    ["request_header_timeout", "408"],
    ["request_overall_timeout", "408"],
    ["request_payload_too_large", "413"],
    ["http1.codec_error", "400"],
    ["duration_timeout", "504"],
    ["overload", "503"],
    ["rate_limited", "429"],
    ["njet_kic", "200"],
    ["upstream", "503"],
    ["", "503"],
    [`${RESET}{overflow}`, "503"],
  ])("is none where it is for %s with %s", (details, status) => {
    expect(takesOut(details, status)).toBe(false);
  });
});

describe("a bundle", () => {
  const SOUND = bundleFrom(
    FEATURE_RULES,
    FEATURE_PEERS.map((set) => upstream(set)),
  );

  it("that is damaged anywhere is refused, and the plugin goes on with the one that it has", () => {
    const { host, plugin, get } = filterWith(answer("old"));
    const step = Math.max(1, Math.floor(SOUND.length / 400));
    for (let at = 0; at < SOUND.length; at += step) {
      const damaged = Uint8Array.from(SOUND);
      damaged[at] ^= 1 << (at & 7);
      // A minor version and bits that the header leaves alone are all that may differ.
      if (at === 6 || at === 7) continue;
      expect(host.reconfigure(plugin, damaged), `byte ${at}`).toBe(false);
    }
    for (let length = 0; length < SOUND.length; length += step) {
      expect(host.reconfigure(plugin, SOUND.subarray(0, length)), `${length} bytes`).toBe(false);
    }
    expect(get().answer?.body).toBe("old");
    expect(host.reconfigure(plugin, SOUND)).toBe(true);
  });

  const exactly = (host: string) => ({ pattern: { kind: "exact" as const, host } });
  /** A bundle of more than one block, with records that cross their borders and one that is larger than a block. */
  const LARGE = bundleFrom([
    ...Array.from({ length: 1_500 }, (_, i) =>
      hostRules([route(prefix("/"), answer(`host ${i}`))], exactly(`h${i}.example.com`)),
    ),
    hostRules(
      Array.from({ length: 9_000 }, (_, i) => route(prefix(`/path/${i}`), answer(`path ${i}`))),
      exactly("paths.example.com"),
    ),
  ]);

  it("that is packed decides as it does unpacked, and is much smaller", () => {
    const packed = packBundle(LARGE);
    expect(LARGE.length).toBeGreaterThan(3 * 262_144);
    expect(packed.length).toBeLessThan(LARGE.length / 2);
    for (const configuration of [LARGE, packed]) {
      const host = new ProxyWasmHost();
      const plugin = host.configure(configuration) ?? 0;
      expect(host.logged.at(-1)).toContain(`1501 shards, 0 peer sets, ${LARGE.length} bytes`);
      const body = (authority: string, path: string) =>
        host.request(plugin, [
          [":authority", authority],
          [":path", path],
        ]).answer?.body;
      for (const i of [0, 1, 700, 1_499]) expect(body(`h${i}.example.com`, "/")).toBe(`host ${i}`);
      for (const i of [0, 4_321, 8_999]) expect(body("paths.example.com", `/path/${i}`)).toBe(`path ${i}`);
    }
  });

  it("whose bytes do not pack well is taken as well", () => {
    let state = 1;
    const noise = Uint8Array.from({ length: 600_000 }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 24;
    });
    const records = readBundle(bundleFrom([hostRules([route(prefix("/"), answer("known"))])]));
    const bundle = writeBundle([...records, { kind: 200, key: "noise", content: noise }]);
    expect(packBundle(bundle).length).toBeLessThan(bundle.length + 50);
    expect(new ProxyWasmHost().configure(packBundle(bundle))).toBeDefined();
  });

  it("that is packed and damaged anywhere is refused without a trap, and the plugin goes on", () => {
    const { host, plugin, get } = filterWith(answer("old"));
    const packed = packBundle(SOUND);
    for (let at = 0; at < packed.length; at += 3) {
      for (const bits of [1 << (at & 7), 0xff]) {
        const damaged = Uint8Array.from(packed);
        damaged[at] ^= bits;
        const taken = host.reconfigure(plugin, damaged);
        // The minor version of the bundle, and another way to pack the same bytes, are all that may pass.
        if (taken) expect(host.logged.at(-1)).toContain(`${SOUND.length} bytes`);
        else expect(get().answer?.body).toBe("old");
        if (taken) host.reconfigure(plugin, bundleFrom([hostRules([route(prefix("/"), answer("old"))])]));
      }
    }
    for (let length = 0; length < packed.length; length += 7) {
      expect(host.reconfigure(plugin, packed.subarray(0, length)), `${length} bytes`).toBe(false);
    }
    expect(host.reconfigure(plugin, Uint8Array.from([...packed, 0]))).toBe(false);
    expect(host.logged.at(-1)).toContain("it is packed in a wrong way");
    expect(get().answer?.body).toBe("old");
  });

  it("that is packed and says to be huge takes no memory for what it says", () => {
    const host = new ProxyWasmHost();
    const before = host.memorySize;
    const packed = packBundle(SOUND);
    new DataView(packed.buffer).setUint32(4, 0x7fff_fff0, true);
    expect(host.configure(packed)).toBeUndefined();
    expect(host.memorySize - before).toBeLessThan(4 << 20);
  });

  it("that is damaged and has a checksum that fits never makes the filter trap", () => {
    const { host, plugin, get } = filterWith(answer("old"));
    let refused = 0;
    const step = Math.max(1, Math.floor(SOUND.length / 700));
    for (let at = 0; at < SOUND.length - 24; at += step) {
      const damaged = resealed(SOUND, (body) => {
        body[at] ^= 1 << (at & 7);
      });
      if (!host.reconfigure(plugin, damaged)) refused++;
      get("/a/b?q=1", [["cookie", "session=abc"]]);
    }
    expect(refused).toBeGreaterThan(300);
  });

  it("whose key is not that of its image is refused, with the reason in the log", () => {
    const records = readBundle(bundleFrom([hostRules([route(prefix("/"), TO_PLAIN)])], [PLAIN]));
    const host = new ProxyWasmHost();
    const refusal = (change: (record: BundleRecord) => BundleRecord) => {
      expect(host.configure(writeBundle(records.map(change)))).toBeUndefined();
      return host.logged.at(-1);
    };
    const renamed = (kind: number) => (record: BundleRecord) =>
      record.kind === kind ? { ...record, key: `${record.key}x` } : record;
    expect(refusal(renamed(1))).toContain("the image of a record is that of another key (record 0)");
    expect(refusal(renamed(2))).toContain("the image of a record is that of another key (record 1)");
    expect(refusal(renamed(3))).toContain("an upstream has no sound description (record 2)");
    const image = (record: BundleRecord) =>
      record.kind === 1 ? { ...record, content: record.content.subarray(0, 50) } : record;
    expect(refusal(image)).toContain("the core refuses an image (record 0, status -2)");
  });

  it("may hold records of kinds that are not known", () => {
    const records = readBundle(bundleFrom([hostRules([route(prefix("/"), answer("known"))])]));
    const more = writeBundle([...records, { kind: 200, key: "later", content: new Uint8Array(5) }]);
    expect(new ProxyWasmHost().configure(more)).toBeDefined();
  });

  it("serves beside the one that it replaces, whose requests end with it", () => {
    const { host, plugin } = filterWith(answer("old"));
    const next = host.configure(bundleFrom([hostRules([route(prefix("/"), answer("new"))])])) ?? 0;
    const head: [string, string][] = [
      [":authority", "example.com"],
      [":path", "/"],
    ];
    expect(host.request(plugin, head).answer?.body).toBe("old");
    expect(host.request(next, head).answer?.body).toBe("new");
    host.end(plugin);
    expect(host.request(next, head).answer?.body).toBe("new");
  });

  it("can be replaced any number of times without more memory", () => {
    const host = new ProxyWasmHost();
    let plugin = host.configure(SOUND) ?? 0;
    let settled = 0;
    for (let i = 0; i < 300; i++) {
      const next = host.configure(SOUND) ?? 0;
      host.end(plugin);
      plugin = next;
      if (i === 20) settled = host.memorySize;
    }
    expect(host.memorySize).toBe(settled);
  });

  it("of any number of requests takes no more memory either", () => {
    const { host, get } = filterWith(
      withHeaders({ op: "add-response", name: "X-Echo", value: [header("x-a")], always: false }),
    );
    const serve = (count: number) => {
      for (let i = 0; i < count; i++) {
        const stream = get(`/${i}`, [["x-a", "v".repeat(i % 5_000)]]);
        if (i % 3) host.respond(stream, [[":status", "200"]]);
        host.end(stream.id);
      }
    };
    serve(5_000);
    const settled = host.memorySize;
    serve(20_000);
    expect(host.memorySize).toBe(settled);
  });
});

describe("options", () => {
  it("that are none are refused", () => {
    const bundle = bundleFrom([]);
    for (const options of ["clusters=other", "decide=short", "unknown", "clusters=upstream\nx"]) {
      expect(new ProxyWasmHost({ options }).configure(bundle), options).toBeUndefined();
    }
    expect(
      new ProxyWasmHost({ options: `clusters=transport\ndecide=${"s".repeat(16)}` }).configure(bundle),
    ).toBeDefined();
  });
});

describe("a question", () => {
  const SECRET = "0123456789abcdef";

  it("is answered with the decision, by who knows the secret", () => {
    const { get } = filterWith(TO_PLAIN, [PLAIN], { options: `decide=${SECRET}` });
    const { answer: given } = get("/a", [["x-njet-decide", SECRET]]);
    expect(given?.status).toBe(200);
    expect(JSON.parse(given?.body ?? "")).toMatchObject({ action: "proxy", peer: "10.0.0.1:80", text: "/a" });
    expect(given?.headers.map(([name]) => name)).toEqual(["x-njet-bundle", "content-type"]);
  });

  it("is a header like any other for who does not know it, and where there is none", () => {
    for (const [options, asked] of [
      [`decide=${SECRET}`, "0123456789abcdeF"],
      [`decide=${SECRET}`, ""],
      ["", ""],
      ["", SECRET],
    ]) {
      const { request, answer: given } = filterWith(TO_PLAIN, [PLAIN], { options }).get("/", [
        ["x-njet-decide", asked],
      ]);
      expect(given).toBeUndefined();
      expect(headerOf(request, "x-njet-cluster")).toBe("njet_http");
    }
  });

  it("that can't be read is answered with 400, whatever it holds", () => {
    const { get } = filterWith(TO_PLAIN, [PLAIN], { options: `decide=${SECRET}` });
    for (const headers of [
      "0",
      "zz",
      "01000000",
      "ffffffff",
      "0100000005000000ffffffff",
      "01000000ffffffffffffffff00",
    ]) {
      expect(get("/", [["x-njet-decide", `${SECRET} 0 0 ${headers}`]]).answer?.status, headers).toBe(400);
    }
  });
});
