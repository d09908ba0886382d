import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readyGo, runGo } from "../conformance/go.js";
import { RawClient } from "../support/raw-client.js";
import { app, ask, bundle, freePort, Program, replaceFile, type Server, serve } from "./node-support.js";

const found = await readyGo();
if ("skipped" in found) console.error(`tests of the reverse proxy in Go are skipped: ${found.skipped}`);

let folder: string;
let binary: string;
let site: string;
let port: number;
let peers: Server[];
let program: Program;
/** Ends the answer that the first peer holds back. */
let release: (() => void) | undefined;

const siteOf = (peer: number) => bundle(app(peers[peer].port));

/** Resolves when one of the peers answers whose site has just been put in place. */
async function answeredBy(name: string): Promise<void> {
  while ((await ask(port, "/")).body !== name) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe.skipIf("skipped" in found)("the program in Go that is shown as an example", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "njet-kic-go-"));
    binary = join(folder, "reverseproxy");
    site = join(folder, "site.njkb");
    if ("go" in found) await runGo(found.go, ["build", "-o", binary, "./examples/reverseproxy"]);
    peers = await Promise.all(
      ["first", "second"].map((name) =>
        serve((request, response) => {
          if (request.url !== "/slow") response.end(name);
          else {
            response.write("slow");
            release = () => response.end("ly");
          }
        }),
      ),
    );
  }, 600_000);

  afterAll(() => {
    for (const peer of peers) peer.close();
    rmSync(folder, { recursive: true, force: true });
  });

  beforeEach(async () => {
    port = await freePort();
    replaceFile(site, siteOf(0));
    program = new Program(folder, binary, ["-bundle", site, "-listen", `127.0.0.1:${port}`]);
    await program.said(/serving/);
    while (!(await ask(port, "/").catch(() => undefined))) await new Promise((resolve) => setTimeout(resolve, 20));
  });

  afterEach(() => program.end());

  it("passes requests on to the peer of the bundle, and answers for hosts that nobody has", async () => {
    const { status, body } = await ask(port, "/a?b=c", { method: "POST" }, "hello");
    expect({ status, body }).toEqual({ status: 200, body: "first" });
    expect((await ask(port, "/", { headers: { host: "other.example.com" } })).status).toBe(404);
  });

  it("takes a new bundle while it serves, and loses no request", async () => {
    let asking = true;
    const answers = new Set<string>();
    const client = async () => {
      while (asking) {
        const { status, body } = await ask(port, "/");
        answers.add(`${status} ${body}`);
      }
    };
    const clients = [client(), client()];
    for (const name of ["second", "first", "second"]) {
      replaceFile(site, siteOf(name === "first" ? 0 : 1));
      await answeredBy(name);
    }
    asking = false;
    await Promise.all(clients);
    expect([...answers].sort()).toEqual(["200 first", "200 second"]);
  });

  it("keeps the bundle that it has where the next one is damaged, and takes the one after that", async () => {
    const damaged = Uint8Array.from(siteOf(1));
    damaged[damaged.length - 1] ^= 1;
    replaceFile(site, damaged);
    await program.said(/the bundle is refused/);
    expect((await ask(port, "/")).body).toBe("first");
    replaceFile(site, siteOf(1));
    await answeredBy("second");
  });

  it("does not start with a bundle that is no bundle", async () => {
    replaceFile(join(folder, "none.njkb"), Buffer.from("nothing of the kind"));
    const other = new Program(folder, binary, ["-bundle", join(folder, "none.njkb"), "-listen", "127.0.0.1:0"]);
    await other.said(/the proxy ends/);
    if (other.process.exitCode === null) await new Promise((resolve) => other.process.once("exit", resolve));
    expect(other.process.exitCode).toBe(1);
  });

  it("ends after the answers that are under way", async () => {
    const client = await RawClient.plain(port);
    client.write("GET /slow HTTP/1.1\r\nHost: app.example.com\r\n\r\n");
    await client.until((received) => received.includes("slow"), 60_000);
    program.process.kill("SIGTERM");
    // From when on nobody else is let in.
    while (await ask(port, "/").catch(() => undefined)) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(program.process.exitCode).toBeNull();
    release?.();
    expect(await client.end(60_000)).toMatch(/slow.*ly/s);
    if (program.process.exitCode === null) await new Promise((resolve) => program.process.once("exit", resolve));
    expect(program.process.exitCode).toBe(0);
  });
});
