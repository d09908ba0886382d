import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { fastify } from "fastify";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type HostPattern, patternOf, patternText } from "../../core-wasm/binding/index.js";
import { BundleRouter, corePlugin, createHandler, followPrimary } from "../../core-wasm/hosts/node/index.js";
import { ingress, service } from "../cli/objects.js";
import { type InstalledPackage, installPackage, ROOT } from "../package/installed-package.js";
import { sharedCore } from "../support/core.js";
import { app, ask, bundle, freePort, Program, readmeProgram, type Server, serve } from "./node-support.js";

const servers: Server[] = [];
const programs: Program[] = [];

afterEach(async () => {
  for (const program of programs.splice(0)) await program.end();
  for (const server of servers.splice(0)) server.close();
});

async function started(listener: Parameters<typeof serve>[0]): Promise<number> {
  const server = await serve(listener);
  servers.push(server);
  return server.port;
}

/** A peer that says what it was sent. */
function echo(name: string): Promise<number> {
  return started((request, response) => {
    let body = "";
    request.setEncoding("latin1").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const { method, url, headers } = request;
      response.setHeader("x-peer", name);
      response.end(JSON.stringify({ name, method, url, headers, body }));
    });
  });
}

/** A proxy in this process, over objects. */
async function proxy(objects: string): Promise<{ port: number; router: BundleRouter; failures: string[] }> {
  const router = new BundleRouter(sharedCore);
  router.load(bundle(objects));
  const failures: string[] = [];
  const handler = createHandler(router, { onFailure: (error) => failures.push(error.message) });
  return { port: await started(handler), router, failures };
}

const VIRTUAL_SERVER = (port: number) => `${service("app", "127.0.0.1", port)}---
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: { name: app }
spec:
  ingressClassName: njet
  host: app.example.com
  upstreams: [{ name: app, service: app, port: 80 }]
  routes:
    - path: /old
      action: { redirect: { url: "https://new.example.com\${request_uri}", code: 301 } }
    - path: /hello
      action: { return: { code: 200, type: text/plain, body: "hello \${arg_name}" } }
    - path: /api
      action:
        proxy:
          upstream: app
          rewritePath: /v2
          requestHeaders: { set: [{ name: X-Team, value: blue }] }
          responseHeaders: { add: [{ name: X-Served, value: "yes", always: true }], hide: [X-Peer] }
`;

describe("the handler of node:http", () => {
  it("passes a request on as it came, without the headers of its connection", async () => {
    const { port } = await proxy(app(await echo("a")));
    const headers = { connection: "x-hop", "x-hop": "1", "x-kept": "2", "x-forwarded-for": "forged" };
    const { status, body } = await ask(port, "/a%2Fb?c=d", { headers });
    expect(status).toBe(200);
    const seen = JSON.parse(body);
    expect(seen).toMatchObject({ method: "GET", url: "/a%2Fb?c=d" });
    expect(seen.headers).toMatchObject({ host: "app.example.com", "x-kept": "2", "x-forwarded-for": "127.0.0.1" });
    expect(seen.headers).not.toHaveProperty("x-hop");
  });

  it("streams a body, of stated length or in chunks", async () => {
    const { port } = await proxy(app(await echo("a")));
    const text = "x".repeat(300_000);
    for (const headers of [{ "content-length": String(text.length) }, { "transfer-encoding": "chunked" }]) {
      const { body } = await ask(port, "/", { method: "POST", headers }, text);
      expect(JSON.parse(body).body.length).toBe(text.length);
    }
  });

  it("carries out redirects, bodies, rewrites and header changes", async () => {
    const { port } = await proxy(VIRTUAL_SERVER(await echo("a")));
    const redirect = await ask(port, "/old?x=1");
    expect([redirect.status, redirect.headers.location]).toEqual([301, "https://new.example.com/old?x=1"]);
    expect(await ask(port, "/hello?name=you")).toMatchObject({ status: 200, body: "hello you" });
    const { headers, body } = await ask(port, "/api/x?y=z");
    expect(JSON.parse(body)).toMatchObject({ url: "/v2/x?y=z", headers: { "x-team": "blue" } });
    expect(headers["x-served"]).toBe("yes");
    expect(headers).not.toHaveProperty("x-peer");
  });

  it("answers by itself what has no rule or no peer", async () => {
    const { port } = await proxy(`${ingress("app", "app.example.com", "app")}`);
    expect((await ask(port, "/")).status).toBe(503);
    expect((await ask(port, "/", { headers: { host: "other.example.com" } })).status).toBe(404);
    expect((await ask(port, "/../x")).status).toBe(400);
  });

  it("refuses two Host headers", async () => {
    const { port } = await proxy(app(await echo("a")));
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      let text = "";
      socket.on("data", (part) => {
        text += part;
      });
      socket.on("close", () => resolve(text));
      socket.end("GET / HTTP/1.1\r\nHost: app.example.com\r\nHost: other.example.com\r\nConnection: close\r\n\r\n");
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("goes to another peer where one can't be reached, whatever the method", async () => {
    const dead = await freePort();
    const { port, failures } = await proxy(app(dead, await echo("b")));
    for (let i = 0; i < 6; i++) {
      const { status, body } = await ask(port, "/", { method: "POST" }, "body");
      expect([status, JSON.parse(body).name, JSON.parse(body).body]).toEqual([200, "b", "body"]);
    }
    expect(failures).toEqual([]);
  });

  it("goes to another peer where one breaks off, for what may be repeated; else answers 502", async () => {
    const breaking = await started((request) => request.socket.destroy());
    const { port, failures } = await proxy(app(breaking, await echo("b")));
    for (let i = 0; i < 4; i++) expect((await ask(port, "/")).status).toBe(200);
    const alone = await proxy(app(breaking));
    expect((await ask(alone.port, "/")).status).toBe(502);
    expect((await ask(alone.port, "/", { method: "POST" }, "x")).status).toBe(502);
    expect(failures).toEqual([]);
    expect(alone.failures.length).toBe(2);
  });

  it("asks a peer again whose kept connection had been closed", async () => {
    let asked = 0;
    const closing = await started((request, response) => {
      asked++;
      response.end("fine");
      // Said to be kept, and closed without a word.
      response.on("finish", () => setImmediate(() => request.socket.destroy()));
    });
    const { port, failures } = await proxy(app(closing));
    for (let i = 0; i < 20; i++) expect((await ask(port, "/")).status).toBe(200);
    expect([asked >= 20, failures]).toEqual([true, []]);
  });

  it("ends its request to the peer where the client leaves, and blames nobody", async () => {
    let left: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      left = resolve;
    });
    const slow = await started((request) => {
      request.socket.on("close", left);
      client.destroy();
    });
    const { port, failures } = await proxy(app(slow));
    const client = connect(port, "127.0.0.1");
    client.write("GET / HTTP/1.1\r\nHost: app.example.com\r\n\r\n");
    await gone;
    expect(failures).toEqual([]);
  });
});

describe("a bundle", () => {
  it("comes into force as what it changes: turns go on, and what is gone is gone", async () => {
    const [a, b] = [await echo("a"), await echo("b")];
    const { port, router } = await proxy(app(a, b));
    const name = async (host = "app.example.com") => {
      const { status, body } = await ask(port, "/", { headers: { host } });
      return status === 200 ? JSON.parse(body).name : status;
    };
    const first = await name();
    router.load(bundle(`${app(a, b)}---\n${ingress("more", "more.example.com", "app")}`));
    const second = await name();
    expect(new Set([first, second])).toEqual(new Set(["a", "b"]));
    expect(await name("more.example.com")).toMatch(/a|b/);
    router.load(bundle(app(a, b)));
    expect(await name("more.example.com")).toBe(404);
  });

  it("may turn a wildcard of one label into one of any number", async () => {
    const port = await echo("a");
    const wildcard = (kind: "Ingress" | "VirtualServer") =>
      kind === "Ingress"
        ? `${service("app", "127.0.0.1", port)}---\n${ingress("app", '"*.example.com"', "app")}`
        : VIRTUAL_SERVER(port).replace("host: app.example.com", 'host: "*.example.com"');
    const { port: at, router } = await proxy(wildcard("Ingress"));
    expect((await ask(at, "/api", { headers: { host: "a.b.example.com" } })).status).toBe(404);
    router.load(bundle(wildcard("VirtualServer")));
    expect((await ask(at, "/api", { headers: { host: "a.b.example.com" } })).status).toBe(200);
    router.load(bundle(wildcard("Ingress")));
    expect((await ask(at, "/api", { headers: { host: "a.b.example.com" } })).status).toBe(404);
  });

  it("that is not sound is refused whole, and the one before stays", async () => {
    const { port, router } = await proxy(app(await echo("a")));
    const next = bundle(app(await echo("b")));
    // A newer minor version, in the header, is nothing unsound.
    for (let i = 8; i < next.length; i += 7) {
      const broken = next.slice();
      broken[i] ^= 4;
      expect(() => router.load(broken)).toThrow(/reading a bundle/);
      expect(() => router.load(next.subarray(0, i))).toThrow();
    }
    expect(JSON.parse((await ask(port, "/")).body).name).toBe("a");
  });
});

it.each<HostPattern>([
  { kind: "exact", host: "a.example.com" },
  { kind: "wildcard", suffix: "example.com", labels: "one" },
  { kind: "wildcard", suffix: "example.com", labels: "any" },
  { kind: "any" },
  { kind: "default" },
])("the text of a host pattern is read as what it was written from: $kind $labels", (pattern) => {
  expect(patternOf(patternText(pattern))).toEqual(pattern);
});

it("a process that is no worker of a cluster follows no primary", async () => {
  await expect(followPrimary(readFileSync(join(ROOT, "dist/core.wasm")))).rejects.toMatchObject({ code: "CORE_STATE" });
});

it("the plugin fits the types of fastify, and has its own bodies only where it is registered", async () => {
  const router = new BundleRouter(sharedCore);
  router.load(bundle(app(await echo("a"))));
  const application = fastify();
  application.post("/own", async (request) => ({ read: request.body }));
  application.register(corePlugin, { router });
  await application.listen({ host: "127.0.0.1", port: 0 });
  const { port } = application.server.address() as AddressInfo;
  const headers = { "content-type": "application/json" };
  const own = await ask(port, "/own", { method: "POST", headers }, '{"a":1}');
  expect(own.body).toBe('{"read":{"a":1}}');
  expect(JSON.parse((await ask(port, "/other", { method: "POST", headers }, '{"a":1}')).body).body).toBe('{"a":1}');
  await application.close();
});

describe("the programs of the page", () => {
  let installed: InstalledPackage;

  beforeAll(() => {
    installed = installPackage(false);
    symlinkSync(join(ROOT, "node_modules/fastify"), join(installed.project, "node_modules/fastify"));
  }, 180_000);
  afterAll(() => installed.remove());

  async function run(name: string): Promise<number> {
    const { project } = installed;
    writeFileSync(join(project, "site.njkb"), bundle(app(await echo("a"))));
    writeFileSync(join(project, "program.js"), readmeProgram(name));
    const port = await freePort();
    const program = new Program(project, process.execPath, ["program.js", "site.njkb", String(port)]);
    programs.push(program);
    await program.said(/^listening$/);
    return port;
  }

  it("serve by node:http", async () => {
    const port = await run("js");
    expect(JSON.parse((await ask(port, "/x")).body)).toMatchObject({ name: "a", url: "/x" });
  });

  it("serve by fastify, beside the application's own routes, bodies and all", async () => {
    const port = await run("js fastify");
    expect((await ask(port, "/health")).body).toBe('{"ok":true}');
    expect(JSON.parse((await ask(port, "/x?y")).body)).toMatchObject({ name: "a", url: "/x?y" });
    const headers = { "content-type": "application/json" };
    const { body } = await ask(port, "/", { method: "POST", headers }, '{"not": "read"}');
    expect(JSON.parse(body)).toMatchObject({ method: "POST", body: '{"not": "read"}' });
    expect((await ask(port, "/", { headers: { host: "other.example.com" } })).status).toBe(404);
  });
});
