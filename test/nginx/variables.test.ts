import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { closing, runCleanups } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { Nginx } from "../support/nginx.js";
import { actionHost } from "../support/plans.js";
import { installation, noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

/** What is asked for, once with NGINX's own function and once with that of the Lua module. */
const NAMES = [
  ...["request_uri", "uri", "args", "http_host", "http_connection", "http_x_none", "http_x_empty", "http_x_twice"],
  ...[
    "arg_a",
    "arg_b",
    "cookie_c",
    "request_length",
    "bytes_sent",
    "upstream_addr",
    "said",
    "unsaid",
    "no_such_variable",
  ],
];

it.skipIf(noNginx)(
  "a worker starts where the configuration names the variable by which it chooses how to read others",
  async () => {
    const edit = (text: string) => text.replace("log_format", "log_format other '$pid';\n  log_format");
    const action = { kind: "return" as const, status: 200, contentType: "text/plain", body: ["one"] };
    const nginx = await RequestNginx.start([actionHost("shop.example.com", action)], { edit });
    expect((await ask(nginx.http)).body).toBe("one");
    expect(nginx.errorLog()).not.toMatch(/more slowly|exited on signal/);
    await runCleanups();
  },
  120_000,
);

describe.skipIf(noNginx)("the balancer reads variables of NGINX", () => {
  let nginx: Nginx;

  beforeAll(async () => {
    const library = await nativeCore();
    const location = (way: string, symbols: string) => `
      location = /${way} { content_by_lua_block {
        local variables = require "balancer.variables"
        local library = assert(require("balancer.core.native").load "${library}")
        variables.open(library)
        local r = require("resty.core.base").get_request()
        local lines = { tostring(variables.choose(r${symbols})) }
        for name in ("${NAMES.join(" ")}"):gmatch "%S+" do
          lines[#lines + 1] = name .. "=" .. tostring(variables.text(r, variables.name(name)))
          lines[#lines + 1] = name .. "=" .. tostring(ngx.var[name])
        end
        local list = variables.list("arg_a", "http_x_none", "arg_n", "uri")
        local together, numbers = {}, {}
        for i = 0, 3 do
          local value = variables.find_all(r, list)[i]
          together[i + 1] = value.bytes == nil and "nil" or require("ffi").string(value.bytes, value.length)
          numbers[i + 1] = variables.numbers(r, list)[i]
        end
        lines[#lines + 1] = table.concat(together, " ")
        lines[#lines + 1] = table.concat(numbers, " ")
        ngx.print(table.concat(lines, "\\n"))
      } }`;
    nginx = await Nginx.start(await installation(), {
      http: 'map $http_x_twice $said { default "said $http_x_twice"; } map $http_x_none $unsaid { default ""; }',
      server: `
        ${location("program", "")}
        ${location("module", ', { "no_such_function" }')}
        ${location("other", ', { "ngx_http_lua_ffi_var_get_none", "ngx_http_get_variable" }')}
        location = /number { content_by_lua_block {
          local variables = require "balancer.variables"
          variables.open(assert(require("balancer.core.native").load "${library}"))
          local r = require("resty.core.base").get_request()
          ngx.print(("%.17g"):format(variables.number(r, variables.name "arg_n")))
        } }
        location = /hex { content_by_lua_block {
          local ffi = require "ffi"
          local library = assert(require("balancer.core.native").load "${library}")
          local bytes, text = ffi.new "uint8_t[256]", ffi.new "char[512]"
          for i = 0, 255 do bytes[i] = i end
          library.functions.njk_hex(text, bytes, 256)
          ngx.print(ffi.string(text, 512))
        } }`,
    });
    closing(nginx);
  }, 120_000);
  afterAll(runCleanups);

  interface Read {
    direct: string;
    found: string[];
    module: string[];
    /** Of several variables at once: values, and numbers that they begin with. */
    together: string[];
  }

  async function pairs(way: string): Promise<Read> {
    const { body } = await nginx.get(`/${way}?a=1%202&b=&n=12.5`, {
      "X-Empty": "",
      "X-Twice": ["one", "two"],
      Cookie: "c=d",
      Connection: "close",
    });
    const [direct, ...lines] = body.toString().split("\n");
    const together = lines.splice(2 * NAMES.length);
    expect(lines).toHaveLength(2 * NAMES.length);
    const half = (odd: number) => lines.filter((_, i) => i % 2 === odd);
    return { direct, found: half(0), module: half(1), together };
  }

  it.each([
    ["by NGINX's own function", "program", "true"],
    ["by the Lua module where that function is not to be had", "module", "false"],
    ["by the first function that is to be had", "other", "true"],
  ])("%s, with the same values", async (_, way, direct) => {
    const answer = await pairs(way);
    expect(answer.direct).toBe(direct);
    expect(answer.found).toEqual(answer.module);
    expect(answer.found).toContain("arg_a=1%202");
    expect(answer.found).toContain("http_x_none=nil");
    expect(answer.found).toContain("cookie_c=d");
    expect(answer.found.some((line) => line.startsWith("said=said one"))).toBe(true);
    expect(answer.together).toEqual([`1%202 nil 12.5 /${way}`, "1 0 12.5 0"]);
  });

  it.each([
    ["0", 0],
    ["7", 7],
    ["1234567890123", 1234567890123],
    ["0.003", 0.003],
    ["12.345", 12.345],
    ["1.5,+2.5", 1.5],
    ["3.", 3],
    ["-", 0],
    ["", 0],
    [".5", 0.5],
    ["x1", 0],
    ["007.250", 7.25],
  ])("and the number that the value %j begins with", async (text, number) => {
    expect(Number((await nginx.get(`/number?n=${text}`)).body.toString())).toBe(number);
  });

  it("and makes two digits of each byte of an id, the higher one first", async () => {
    const { body } = await nginx.get("/hex");
    expect(body.toString()).toBe(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString("hex"));
  });
});
