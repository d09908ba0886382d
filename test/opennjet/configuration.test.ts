import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  DEFAULT_BUNDLED_CONFIGURATION,
  DEFAULT_OPENNJET_CONFIGURATION,
  openNjetConfiguration,
} from "../../controller/proxies/opennjet/configuration.js";
import { questionFolder } from "../../controller/proxies/opennjet/locations/questions.js";
import { CARRIERS } from "../../controller/proxies/opennjet/parts.js";

const OPTIONS = DEFAULT_OPENNJET_CONFIGURATION;

function deployed(name: string): string {
  return readFileSync(new URL(`../../deploy/opennjet/${name}`, import.meta.url), "utf8");
}

describe("the configurations of OpenNJet", () => {
  it("are, with default options, the files that deploy/opennjet carries", () => {
    const { data, control } = openNjetConfiguration(OPTIONS);
    expect(deployed("njet.conf")).toBe(data);
    expect(deployed("njet_ctrl.conf")).toBe(control);
  });

  it("have the upstream as OpenNJet's own controller has it", () => {
    expect(openNjetConfiguration(OPTIONS).data.replace(/\s+/g, " ")).toContain(
      "upstream upstream_balancer { server 0.0.0.1; balancer_by_lua_block { balancer.balance() } " +
        "keepalive 320; keepalive_time 1h; keepalive_timeout 120s; keepalive_requests 10000; }",
    );
  });

  it("open 80, 443 and 12001 to everybody, and the control API to loopback only", () => {
    const { data, control } = openNjetConfiguration(OPTIONS);
    const listeners = (text: string) => [...text.matchAll(/listen (\S+?);?(?: .*)?$/gm)].map(([, where]) => where);
    expect(listeners(data)).toEqual([
      ...["0.0.0.0:80", "[::]:80", "0.0.0.0:443", "[::]:443", "unix:/run/njet-kic/control.sock"],
    ]);
    expect(listeners(control)).toEqual(["127.0.0.1:8081", "0.0.0.0:12001", "[::]:12001"]);
  });

  it("load the modules that are used, and no others", () => {
    const modules = (text: string) => [...text.matchAll(/\/(njt_\w+)\.so/g)].map(([, name]) => name);
    const core = openNjetConfiguration(OPTIONS);
    expect(modules(core.data)).toEqual([
      ...["njt_http_lua_module", "njt_http_dyn_map_module", "njt_http_vtsc_module"],
      ...["njt_helper_broker_module", "njt_helper_ctrl_module"],
    ]);
    expect(modules(core.control)).toEqual([
      ...["njt_http_sendmsg_module", "njt_ctrl_config_api_module", "njt_http_vtsd_module"],
    ]);
    const bare = openNjetConfiguration({ ...OPTIONS, stats: undefined });
    expect(modules(bare.data + bare.control).filter((name) => name?.includes("_vts"))).toEqual([]);
    const locations = openNjetConfiguration({ ...OPTIONS, carrier: "locations" });
    expect(modules(locations.data)).toContain("njt_http_location_module");
    expect(modules(locations.control)).toContain("njt_http_location_api_module");
  });

  it("have no Lua block that OpenNJet does not start with", () => {
    expect(openNjetConfiguration(OPTIONS).data).not.toContain("set_by_lua_block");
  });

  it("ask no map about less than two characters, since OpenNJet's workers would refuse every later change of maps", () => {
    const sources = [...openNjetConfiguration(OPTIONS).data.matchAll(/^\s*map "?(.*?)"? \$/gm)].map(
      ([, source = ""]) => source,
    );
    expect(sources.length).toBeGreaterThan(10);
    expect(sources.filter((source) => source.length < 2)).toEqual([]);
  });

  it("have room for the longest names in each map, said before the first one: a map with a name that does not fit is refused whole", () => {
    for (const carrier of CARRIERS) {
      const { data } = openNjetConfiguration({ ...OPTIONS, carrier });
      const [before, bytes] = data.split(/map_hash_bucket_size (\d+);/);
      expect(before).not.toMatch(/^\s*(map|geo) /m);
      // A pointer, a length, a name of 253 bytes and its end, and a pointer behind the last one.
      expect(Number(bytes)).toBeGreaterThanOrEqual(8 + 256 + 8);
    }
  });

  it("keep nobody out of the access log but the controller that asks its workers, by a path that is no client's to know and leads to no peer", () => {
    const questions = questionFolder("token");
    for (const balancer of ["own", "bundled"] as const) {
      const options = { ...OPTIONS, carrier: "locations" as const, balancer, accessLog: "/access.log" };
      const { data } = openNjetConfiguration({ ...options, questions });
      const log = [...data.matchAll(/^\s*access_log (.*);$/gm)].map(([, value]) => value);
      expect(log.filter((value) => value !== "off")).toEqual(['"/access.log" njet_kic if=$njet_kic_logged']);
      expect(data).toMatch(
        new RegExp(
          `map \\$uri \\$njet_kic_asked { default none; "~\\^/\\(\\?:${questions}\\|[0-9a-f]{32}\\)/\\(\\[0-9a-f]\\+\\)\\$" \\$1; }`,
        ),
      );
      expect(data).toContain("map $njet_kic_asked $njet_kic_logged { none 1; default 0; }");
      expect(data).toContain(`location ^~ /${questions}/ { return 404 "\${pid}"; }`);
    }
    expect(questionFolder("another token")).not.toBe(questions);
    expect(questions).not.toContain("token");
  });

  it("take no request for a question where no secret is given, and know the variable all the same", () => {
    const { data } = openNjetConfiguration({ ...OPTIONS, carrier: "locations", accessLog: "/access.log" });
    expect(data).toContain("map $uri $njet_kic_asked { default none; }");
    expect(data).not.toContain("if=");
  });

  it.each([
    ["a folder of questions that is none", { carrier: "locations" as const, questions: '"; evil' }],
    ["a socket with a blank", { api: { socket: "/run/a b" } }],
    ["a port of the API that is none", { api: { port: 70_000 } }],
    ["a folder with a quote", { modulesFolder: '/usr/lib/a";evil' }],
    ["an address of the metrics that is none", { stats: { address: "0.0.0.0; evil", port: 1 } }],
  ])("refuse %s", (_title, options) => {
    expect(() => openNjetConfiguration({ ...OPTIONS, ...options })).toThrow(RangeError);
  });
});

describe("the configurations of OpenNJet with its own balancer", () => {
  const { data, control } = openNjetConfiguration(DEFAULT_BUNDLED_CONFIGURATION);

  it("are, with default options, the files that deploy/opennjet/bundled carries", () => {
    expect(deployed("bundled/njet.conf")).toBe(data);
    expect(deployed("bundled/njet_ctrl.conf")).toBe(control);
  });

  it("have the same upstream", () => {
    expect(data.replace(/\s+/g, " ")).toContain(
      "upstream upstream_balancer { server 0.0.0.1; balancer_by_lua_block { balancer.balance() } " +
        "keepalive 320; keepalive_time 1h; keepalive_timeout 120s; keepalive_requests 10000; }",
    );
  });

  it("load none of our Lua", () => {
    expect(data).not.toContain(OPTIONS.packageRoot);
    expect(data).not.toContain(OPTIONS.library);
    expect(data).toContain('lua_package_path "/usr/local/njet/lualib/lib/?.lua;');
    expect(data).toContain(';/usr/local/njet/modules/?.lua";');
  });

  it("show backends on the control socket alone, and nothing of certificates anywhere", () => {
    const [before, after] = data.split("listen unix:/run/njet-kic/control.sock;");
    expect(before).not.toContain("configuration.call");
    expect([...after.matchAll(/location = (\S+)/g)].map(([, path]) => path)).toEqual([
      ...["/configuration/backends", "/state", "/worker"],
    ]);
  });

  it("log nothing below warnings: it writes whole bodies at notice", () => {
    expect(data).toContain("error_log stderr warn;");
  });

  it("end the tries for a request, which it would repeat without end", () => {
    expect(data).toContain("proxy_next_upstream_tries 3;");
    expect(data).toContain("grpc_next_upstream_tries 3;");
  });

  it("are refused with the carrier core, which needs a balancer that routes", () => {
    expect(() => openNjetConfiguration({ ...OPTIONS, balancer: "bundled" })).toThrow(RangeError);
  });
});
