import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { nginxConfiguration } from "../../controller/proxies/nginx/configuration.js";
import { DEFAULT_CONFIGURATION } from "../../controller/proxies/nginx/configuration-options.js";

const OPTIONS = { ...DEFAULT_CONFIGURATION };

describe("the text of nginx.conf", () => {
  it("is, with default options, the file that deploy/nginx carries", () => {
    const file = readFileSync(new URL("../../deploy/nginx/nginx.conf", import.meta.url), "utf8");
    expect(file).toBe(nginxConfiguration(DEFAULT_CONFIGURATION));
  });

  it("has the upstream as OpenNJet's own controller has it", () => {
    expect(nginxConfiguration(OPTIONS).replace(/\s+/g, " ")).toContain(
      "upstream upstream_balancer { server 0.0.0.1; balancer_by_lua_block { balancer.balance() } " +
        "keepalive 320; keepalive_time 1h; keepalive_timeout 120s; keepalive_requests 10000; }",
    );
  });

  it("listens to IPv4 and IPv6 by sockets of their own, so that no client is shown as ::ffff:10.0.0.1", () => {
    const text = nginxConfiguration({ ...OPTIONS, https: undefined, http: { port: 8080 } });
    const listeners = [...text.matchAll(/listen (\S+ ipv6only=\w+|\S+:8080) /g)].map(([, listener]) => listener);
    expect(listeners).toEqual(["0.0.0.0:8080", "[::]:8080 ipv6only=on"]);
  });

  it.each([
    ["a path with a quote", { runDirectory: '/run/a";evil' }],
    ["a path with a newline", { tokenFile: "/run/a\nevil on;" }],
    ["a path with a variable", { accessLog: "/var/log/$host" }],
    ["a path with a brace", { library: "/lib/a}" }],
    ["a socket with a blank", { controlSocket: "/run/a b" }],
    ["an address that is none", { http: { address: "0.0.0.0; evil", port: 80 } }],
    ["an address with a zone", { http: { address: "fe80::1%eth0", port: 80 } }],
    ["a network with a zone", { trustedProxies: ["fe80::%eth0/10"] }],
    ["a port that is none", { http: { port: 70_000 } }],
    ["a network that is none", { trustedProxies: ["10.0.0.0/8; evil"] }],
    ["a network of too many bits", { trustedProxies: ["10.0.0.0/33"] }],
    ["no listener", { http: undefined, https: undefined }],
    ["TLS without a certificate", { defaultCertificate: undefined }],
  ])("refuses %s", (_title, options) => {
    expect(() => nginxConfiguration({ ...OPTIONS, ...options })).toThrow(RangeError);
  });
});
