import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { makeFolder, put, ROOT, runCli } from "./cli-support.js";
import { ingress, service } from "./objects.js";

cleanUpAfterEach();

const CAFE = ["match", "--config-dir", join(ROOT, "examples/cafe")];

/** The one JSON line that `match --json` prints for these arguments. */
async function decided(...args: string[]): Promise<unknown> {
  const { status, stdout, stderr } = await runCli([...CAFE, "--json", ...args]);
  expect({ status, stderr, lines: stdout.split("\n").length }).toEqual({ status: 0, stderr: "", lines: 2 });
  return JSON.parse(stdout);
}

describe("match --json", () => {
  it("prints what a proxied request leads to", async () => {
    expect(await decided("http://cafe.example.com/tea/green?cup=2")).toEqual({
      action: "proxy",
      upstream: "default/tea:80",
      peer: "127.0.0.1:19102",
      target: "/tea/green?cup=2",
      resource: "Ingress/default/cafe",
      host: "cafe.example.com",
      path: "/tea",
    });
  });

  it("prints status and location of a redirect", async () => {
    expect(await decided("https://menu.example.com/old-menu")).toEqual({
      action: "redirect",
      status: 302,
      location: "https://cafe.example.com/",
      resource: "VirtualServer/default/menu",
      host: "menu.example.com",
      path: "=/old-menu",
    });
  });

  it("prints status and body of an answer", async () => {
    expect(await decided("-X", "POST", "http://menu.example.com/drinks/espresso")).toEqual({
      action: "return",
      status: 201,
      body: '{"ordered":"/drinks/espresso"}',
      resource: "VirtualServer/default/menu",
      host: "menu.example.com",
      path: "/drinks",
    });
  });

  it("prints nothing but the status where no object decides", async () => {
    expect(await decided("http://unknown.example.com/")).toEqual({ action: "return", status: 404 });
  });

  it("takes the text of a URL as it is written", async () => {
    const folder = makeFolder();
    put(folder, "app.yaml", `${service("app", "10.0.0.1", 80)}---\n${ingress("app", "app.example.com", "app")}`);
    const target = "/a%2Fb/./c%20d?q=%2F&next=http://x/../y";
    const args = ["match", "--config-dir", folder, "--json", `http://APP.example.com:81${target}`];
    expect(JSON.parse((await runCli(args)).stdout)).toMatchObject({ action: "proxy", target });
  });

  it("decides by the cookies, headers and client of its options", async () => {
    const url = "http://menu.example.com/drinks";
    expect(await decided("-H", "Cookie: a=b", "-H", "Cookie: drink=latte", url)).toMatchObject({
      upstream: "default/coffee:80",
    });
    expect(await decided("--header", "X-DRINK: Coffee", url)).toMatchObject({ upstream: "default/coffee:80" });
    expect(await decided("--client", "192.0.2.1", url)).toMatchObject({ upstream: "default/tea:80" });
    expect(await decided("-H", "Host: cafe.example.com", url)).toMatchObject({ resource: "Ingress/default/cafe" });
  });

  it("adds with --explain every rule that was tried, in order", async () => {
    const { explain } = (await decided("--explain", "http://menu.example.com/drinks")) as {
      explain: { step: string; rule: string; result: string; reason: string; resource?: string }[];
    };
    expect(explain.map(({ step, result }) => `${step} ${result}`)).toEqual([
      "host taken",
      "route passed",
      "route passed",
      "route passed",
      "route taken",
      "condition passed",
      "route passed",
      "condition passed",
      "route passed",
      "condition passed",
      "route passed",
      "upstream taken",
    ]);
    expect(explain[5]).toMatchObject({ rule: 'header x-drink is "coffee"', reason: 'the request has ""' });
    expect(explain[4]).toMatchObject({ rule: "/drinks", resource: "VirtualServer/default/menu" });
  });
});

describe("match, for people", () => {
  it("prints the decision in one line, where it comes from in the next, and with --explain one for each rule", async () => {
    const { stdout } = await runCli([...CAFE, "--explain", "http://cafe.example.com/tea"]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toBe('proxy upstream="default/tea:80" peer="127.0.0.1:19102" target="/tea"');
    expect(lines[1]).toBe('  from Ingress/default/cafe, host "cafe.example.com", path "/tea"');
    expect(lines.slice(2).every((line) => /^ {2}[+-] (host|route|upstream) /.test(line))).toBe(true);
  });
});

describe("match --requests", () => {
  it("prints one decision a line, and an error in the line's place where a line is no request", async () => {
    const input = [
      '{"url":"http://cafe.example.com/tea"}',
      "no JSON",
      '{"method":"GET"}',
      '{"url":"http://cafe.example.com/","method":7}',
      '{"url":"http://cafe.example.com/","headers":{"a":1}}',
      '{"url":"gopher://cafe.example.com/"}',
      "",
      '{"method":"POST","url":"http://menu.example.com/drinks","headers":{"a":"b"},"client":"192.0.2.1"}',
    ];
    const { status, stdout } = await runCli([...CAFE, "--requests", "-"], input.join("\n"));
    expect(status).toBe(1);
    expect(
      stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { upstream: "default/tea:80" },
      { error: expect.any(String) },
      { error: "url is missing or no text" },
      { error: "method is no text" },
      { error: "header a is no text" },
      { error: expect.stringContaining("gopher") },
      { action: "return", status: 201 },
    ]);
  });

  it("reads a file and ends with status 0 when every line is a request", async () => {
    const folder = makeFolder();
    put(folder, "requests.jsonl", '{"url":"http://cafe.example.com/"}\r\n{"url":"http://cafe.example.com/coffee"}\r\n');
    const { status, stdout } = await runCli([...CAFE, "--requests", join(folder, "requests.jsonl")]);
    expect(status).toBe(0);
    expect(stdout.match(/"upstream":"[^"]*"/g)).toEqual([
      '"upstream":"default/welcome:80"',
      '"upstream":"default/coffee:80"',
    ]);
  });

  it("gives every peer of a round robin its turn", async () => {
    const line = '{"url":"http://cafe.example.com/coffee"}\n';
    const { stdout } = await runCli([...CAFE, "--requests", "-"], line.repeat(6));
    expect(stdout.match(/19\d{3}/g)).toEqual(["19104", "19105", "19106", "19104", "19105", "19106"]);
  });
});

describe("match, when nothing can be decided", () => {
  it.each([
    [["--config-dir", "/no/such/folder", "http://a/"], 2, "/no/such/folder: does not exist"],
    [["--config-dir", "examples/cafe", "ftp://a/"], 2, '"ftp://a/" is no URL'],
    [["--config-dir", "examples/cafe", "--requests", "/no/such/file"], 2, "/no/such/file"],
    [["--config-dir", "examples/cafe"], 1, "give either a URL or --requests"],
    [["--config-dir", "examples/cafe", "-H", "no colon", "http://a/"], 1, "'Name: value'"],
    [["--config-dir", "examples/cafe", "--client", "me", "http://a/"], 1, "an IP address"],
    [["http://a/"], 1, "--config-dir"],
  ])("ends for %j with status %i and a reason, and prints no decision", async (args, expected, reason) => {
    const { status, stdout, stderr } = await runCli(["match", ...args]);
    expect(status).toBe(expected);
    expect(stdout).toBe("");
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain("    at ");
  });

  it("decides with what can be read where one file is broken, and names that file", async () => {
    const folder = makeFolder();
    put(folder, "app.yaml", `${service("app", "10.0.0.1", 80)}---\n${ingress("app", "app.example.com", "app")}`);
    put(folder, "broken.yaml", "a: [b");
    const { status, stdout, stderr } = await runCli(["match", "--config-dir", folder, "http://app.example.com/"]);
    expect(status).toBe(0);
    expect(stdout).toContain('peer="10.0.0.1:80"');
    expect(stderr).toMatch(/broken\.yaml:\d+: /);
  });
});
