import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bundleFrom } from "./bundles.js";
import { filterWith, headerOf, PLAIN, TO_PLAIN } from "./filter-plugin.js";
import { FILTER, ProxyWasmHost } from "./proxy-wasm-host.js";

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
