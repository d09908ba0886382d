import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { untilAnswer } from "../support/load.js";
import { httpPeer, tcpPeer } from "../support/peers.js";
import { servedCertificate } from "../support/raw-client.js";
import { Child, makeFolder, put, ROOT, runCli } from "./cli-support.js";
import { parseCurl } from "./curl-line.js";

cleanUpAfterEach();

const SERVICES = "examples/cafe/services.yaml";

/**
 * The built command with a sample of its own, whose upstreams get free ports: so that it can run beside another
 * `npm start`, and so that its files can be changed.
 */
async function copyOfTheSample(): Promise<{ folder: string; script: string }> {
  const folder = makeFolder();
  for (const part of ["package.json", "dist/core.wasm", "dist/controller", "dist/core-wasm", "examples"]) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  let services = readFileSync(join(folder, SERVICES), "utf8");
  const ports = services.match(/\b191\d\d\b/g) ?? [];
  // All are held at once, so that no two are the same.
  const held = await Promise.all(ports.map(() => tcpPeer((socket) => socket.destroy())));
  for (const [index, port] of ports.entries()) services = services.replace(port, String(held[index].port));
  await Promise.all(held.map((peer) => peer.close()));
  writeFileSync(join(folder, SERVICES), services);
  return { folder, script: join(folder, "dist/controller/cli/main.js") };
}

async function startSample() {
  const { folder, script } = await copyOfTheSample();
  const child = new Child(script, ["start", "--address", "127.0.0.1", "--http-port", "0", "--https-port", "0"]);
  const text = await child.until("it says how to end it", () => child.stdout.includes("Ctrl-C") && child.stdout);
  const lines = text.split("\n").filter((line) => line.startsWith("  curl "));
  return { folder, child, text, requests: lines.map(parseCurl) };
}

describe("start, without a folder", () => {
  it("prints curl lines of which every one gives what the sample promises", async () => {
    const { requests } = await startSample();
    const answers = [];
    for (const request of requests) {
      const { status, headers, body } = await ask(request.port, request);
      const { service, target } = status === 200 ? JSON.parse(body) : { service: undefined, target: undefined };
      const told = status === 200 ? `${service} ${target}` : status === 302 ? headers.location : body;
      answers.push(`${request.method ?? "GET"} ${request.host}${request.path}: ${status} ${told}`);
    }
    expect(answers).toEqual([
      "GET cafe.example.com/: 200 welcome /",
      "GET cafe.example.com/tea/green: 200 tea /tea/green",
      "GET cafe.example.com/coffee: 200 coffee /coffee",
      "GET menu.example.com/drinks: 200 tea /drinks",
      "GET menu.example.com/drinks: 200 coffee /drinks",
      "GET menu.example.com/drinks: 200 coffee /drinks",
      'POST menu.example.com/drinks/espresso: 201 {"ordered":"/drinks/espresso"}',
      "GET menu.example.com/tables/7/bill?tip=2: 200 coffee /bills/7?tip=2",
      "GET menu.example.com/tables?guest=ada: 200 coffee /tables?guest=ada",
      expect.stringMatching(/^GET menu\.example\.com\/special: 200 (tea|coffee) \/special$/),
      "GET menu.example.com/old-menu: 302 http://cafe.example.com/",
    ]);
    expect(requests.filter(({ tls }) => tls)).toHaveLength(1);
  });

  it("serves over TLS with a certificate for the sample's host", async () => {
    const { requests } = await startSample();
    const https = requests.find(({ tls }) => tls);
    expect((await servedCertificate(https?.port ?? 0, "cafe.example.com")).subject.CN).toBe("cafe.example.com");
  });

  it("leads one guest always to one peer, and guests to every peer", async () => {
    const { requests } = await startSample();
    const { port, host } = requests.find(({ path }) => path?.startsWith("/tables?")) ?? { port: 0 };
    const peerOf = async (guest: string) =>
      JSON.parse((await ask(port, { host, path: `/tables?guest=${guest}` })).body).peer;
    const first = await peerOf("ada");
    for (let i = 0; i < 5; i++) expect(await peerOf("ada")).toBe(first);
    const peers = new Set<string>();
    for (let i = 0; i < 40; i++) peers.add(await peerOf(`guest-${i}`));
    expect(peers.size).toBe(3);
  });

  it("takes a change of the sample's files without a restart", async () => {
    const { folder, requests } = await startSample();
    const [{ port, host }] = requests;
    const file = "examples/cafe/ingress.yaml";
    put(folder, file, readFileSync(join(folder, file), "utf8").replaceAll("name: welcome", "name: tea"));
    await untilAnswer(port, host ?? "", ({ body }) => JSON.parse(body).service === "tea");
  });

  it("prints a match command that explains the decision", async () => {
    const { text } = await startSample();
    const line = text.split("\n").find((candidate) => candidate.includes(" match "));
    const [, command] = /npm run --silent cli -- (.*)$/.exec(line ?? "") ?? [];
    const args = (command ?? "").match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
    const { status, stdout } = await runCli(args);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^proxy upstream="default\/coffee:80"/);
    expect(stdout).toContain('+ condition header x-drink is "coffee": the request has "coffee"');
  });

  it("ends with status 0 on SIGINT", async () => {
    const { child } = await startSample();
    child.process.kill("SIGINT");
    expect((await child.ended).status).toBe(0);
  });

  it("says which sample upstream cannot be opened, and does not blame the proxy's ports", async () => {
    const { folder, script } = await copyOfTheSample();
    const other = closing(await httpPeer((_request, response) => response.end()));
    const services = readFileSync(join(folder, SERVICES), "utf8");
    writeFileSync(join(folder, SERVICES), services.replace(/(welcome.*?port: )\d{4,}/s, `$1${other.port}`));
    const child = new Child(script, ["start", "--http-port", "0", "--https-port", "0"]);
    const { status, stderr } = await child.ended;
    expect(status).toBe(1);
    expect(stderr).toBe(
      `njet-kic: the sample upstream welcome cannot listen on 127.0.0.1:${other.port}: another program has the port\n`,
    );
  });
});

describe("start, with a folder", () => {
  it("serves that folder and opens no sample upstreams", async () => {
    const { script } = await copyOfTheSample();
    const folder = makeFolder();
    const ports = ["--address", "127.0.0.1", "--http-port", "0", "--https-port", "0"];
    const child = new Child(script, ["start", "--config-dir", folder, ...ports]);
    const serving = await child.until("it serves", () => child.log().find(({ message }) => message === "serving"));
    expect(serving).toMatchObject({ configDir: folder });
    expect((await ask(serving.http as number, { host: "cafe.example.com" })).status).toBe(404);
  });
});
