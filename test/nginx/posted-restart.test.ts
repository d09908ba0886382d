/** What scripts post outlives a restart of NGINX, by the journal of the controller. */
import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createLogger } from "../../controller/observability/logger.js";
import { Journal } from "../../controller/proxies/nginx/journal.js";
import { attachedNginx } from "../../controller/proxies/nginx/make-nginx.js";
import type { NginxProxy } from "../../controller/proxies/nginx/nginx-proxy.js";
import { KEPT_KINDS, makePiece, parsePieceName } from "../../controller/proxies/nginx/piece.js";
import { makeCertificate } from "../support/certificates.js";
import { makeRoutingTable } from "../support/core.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { until } from "./driven-nginx.js";
import { noNginx } from "./installation.js";
import { ConfigurationNginx, endpointsOf, namedPeer } from "./posted-nginx.js";

cleanUpAfterEach();

const NAME = "shop-web-80";
const BACKENDS = "/configuration/backends";
const BACKEND_KIND = KEPT_KINDS[0] ?? 0;

interface Controller {
  proxy: NginxProxy;
  lines: Record<string, unknown>[];
}

/** A controller that attaches to the NGINX; it leaves after the test, or when its proxy is closed. */
async function attach({ nginx }: ConfigurationNginx): Promise<Controller> {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ sink: { write: (line) => lines.push(JSON.parse(line)) }, now: Date.now });
  const proxy = attachedNginx({ compiler: makeRoutingTable(), logger }, nginx.controlSocket, undefined);
  cleanup(() => proxy.close(1_000));
  await proxy.listen();
  return { proxy, lines };
}

const journalOf = ({ nginx }: ConfigurationNginx) => join(nginx.folder, "state.journal");

/** Contents of what was posted and stands in the journal, by name; read from a copy, since opening one cuts off what is torn. */
async function journaled(nginx: ConfigurationNginx): Promise<Record<string, string>> {
  const copy = join(nginx.nginx.folder, "copy.journal");
  copyFileSync(journalOf(nginx), copy);
  const journal = await Journal.open(copy);
  const kept: Record<string, string> = {};
  for (const name of journal.names()) {
    if (!KEPT_KINDS.includes(parsePieceName(name).kind)) continue;
    kept[name] = Buffer.from((await journal.read(name))?.content ?? []).toString();
  }
  await journal.close();
  return kept;
}

/** Resolves when the journal has this text of what was posted. */
function kept(nginx: ConfigurationNginx, name: string, text: string | undefined): Promise<void> {
  return until(`the journal has ${text} of ${name}`, async () => {
    const content = (await journaled(nginx))[`${BACKEND_KIND}:${name}`];
    return text === undefined ? content === undefined : content?.includes(text) === true;
  });
}

describe.skipIf(noNginx)("what is posted to NGINX", () => {
  it("serves again after a restart of NGINX while the controller is away, to the byte", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start();
    const { proxy } = await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(peer), "load-balance": "ewma" });
    await nginx.post("/configuration/general", { a: 1 });
    await until("all is kept", async () => Object.keys(await journaled(nginx)).length === 3);
    const before = (await nginx.control(BACKENDS)).body;
    await proxy.close(1_000);
    await nginx.nginx.restart();
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("a"));
    expect((await nginx.control(BACKENDS)).body).toBe(before);
    expect(JSON.parse((await nginx.control("/configuration/general")).body)).toEqual({ a: 1 });
    expect((await nginx.control("/is-dynamic-lb-initialized")).status).toBe(200);
    // The same again is no change.
    expect(await nginx.backends(...JSON.parse(before))).toMatchObject({ changed: 0, removed: 0 });
  });

  it("is kept in a file that nobody else can read", async () => {
    const nginx = await ConfigurationNginx.start();
    await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(1) });
    await kept(nginx, NAME, "127.0.0.1");
    expect(statSync(journalOf(nginx)).mode & 0o777).toBe(0o600);
  });

  it("serves again after a restart of NGINX with the controller there, as it was posted last", async () => {
    const [a, b] = [await namedPeer("a"), await namedPeer("b")];
    const nginx = await ConfigurationNginx.start();
    await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(a) }, { name: "gone", endpoints: endpointsOf(a) });
    await kept(nginx, "gone", String(a.port));
    await nginx.backends({ name: NAME, endpoints: endpointsOf(b) });
    await kept(nginx, "gone", undefined);
    await kept(nginx, NAME, String(b.port));
    await nginx.nginx.restart();
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("b"));
    expect(await nginx.asked(1, "gone")).toEqual(["503"]);
    // What is posted to the new one is kept just so.
    await nginx.backends({ name: NAME, endpoints: endpointsOf(a) });
    await kept(nginx, NAME, String(a.port));
    await nginx.nginx.restart();
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("a"));
  });

  it("is read back by the next controller, where it was posted while none was there", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start();
    await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
    const { proxy } = await attach(nginx);
    await kept(nginx, NAME, String(peer.port));
    await proxy.close(1_000);
    await nginx.nginx.restart();
    expect(await nginx.asked(2, NAME)).toEqual(["a", "a"]);
  });

  it("is put back by the controller into an NGINX that has started without its journal", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start();
    const { proxy } = await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(peer) });
    await kept(nginx, NAME, String(peer.port));
    await proxy.close(1_000);
    const journal = readFileSync(journalOf(nginx));
    await nginx.nginx.restart(() => truncateSync(journalOf(nginx), 0));
    expect(await nginx.asked(1, NAME)).toEqual(["503"]);
    writeFileSync(journalOf(nginx), journal);
    await attach(nginx);
    await until("it serves", async () => (await nginx.ask(NAME)).status === 200);
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("a"));
  });

  it("comes before what was posted to an earlier NGINX", async () => {
    const [a, b] = [await namedPeer("a"), await namedPeer("b")];
    const nginx = await ConfigurationNginx.start();
    const { proxy } = await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(a) });
    await kept(nginx, NAME, String(a.port));
    await proxy.close(1_000);
    const journal = readFileSync(journalOf(nginx));
    await nginx.nginx.restart(() => truncateSync(journalOf(nginx), 0));
    await nginx.backends({ name: NAME, endpoints: endpointsOf(b) });
    writeFileSync(journalOf(nginx), journal);
    await attach(nginx);
    await kept(nginx, NAME, String(b.port));
    expect(await nginx.asked(4, NAME)).toEqual(Array(4).fill("b"));
    // Nor is it put back by anybody else who has the token.
    const old = makePiece(BACKEND_KIND, NAME, Buffer.from("{}"));
    expect(await nginx.nginx.client.putBack([old])).toBeUndefined();
  });

  it("is ignored where the journal is damaged, which is told of; all else serves, and the next post is kept", async () => {
    const [a, b] = [await namedPeer("a"), await namedPeer("b")];
    const nginx = await ConfigurationNginx.start();
    const { proxy } = await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(a) });
    await kept(nginx, NAME, String(a.port));
    await proxy.close(1_000);
    await nginx.nginx.restart(() => {
      const bytes = readFileSync(journalOf(nginx));
      const at = bytes.indexOf('"127.0.0.1"');
      expect(at).toBeGreaterThan(0);
      // Still JSON: only the checksum shows it.
      bytes[at + 1] = 0x32;
      writeFileSync(journalOf(nginx), bytes);
    });
    expect(nginx.nginx.errorLog()).toContain("the journal ends before its end: a record does not fit its checksum");
    expect(await nginx.asked(1, NAME)).toEqual(["503"]);
    await attach(nginx);
    await nginx.backends({ name: NAME, endpoints: endpointsOf(b) });
    await kept(nginx, NAME, String(b.port));
    await nginx.nginx.restart();
    expect(await nginx.asked(2, NAME)).toEqual(["b", "b"]);
  });

  it("that no worker can put in force is told of, and the rest serves", async () => {
    const peer = await namedPeer("a");
    const nginx = await ConfigurationNginx.start();
    const good = { name: NAME, endpoints: endpointsOf(peer) };
    await nginx.backends(good);
    const { proxy } = await attach(nginx);
    await kept(nginx, NAME, String(peer.port));
    await proxy.close(1_000);
    const journal = await Journal.open(journalOf(nginx));
    await journal.append([makePiece(BACKEND_KIND, "wrong", Buffer.from('{"name":"other"}'))]);
    await journal.close();
    await nginx.nginx.restart();
    expect(await nginx.asked(2, NAME)).toEqual(["a", "a"]);
    expect(await nginx.asked(1, "wrong")).toEqual(["503"]);
    expect(nginx.nginx.errorLog()).toContain("the content is that of another backend");
  });

  it("is given back to who shows the token only, and no certificate is", async () => {
    const nginx = await ConfigurationNginx.start();
    const { chain, key } = makeCertificate("posted", "shop.example.com");
    await nginx.backends({ name: NAME, endpoints: endpointsOf(1) });
    await nginx.post("/configuration/servers", {
      servers: { "shop.example.com": "1" },
      certificates: { "1": `${chain}\n${key}` },
    });
    expect((await nginx.control("/configuration/kept", { token: false })).status).toBe(401);
    const pieces = (await nginx.nginx.client.kept()) ?? [];
    expect(pieces.map(({ key: name }) => name).sort()).toEqual(["initialized", NAME]);
    // Nor is one taken.
    await expect(nginx.nginx.client.putBack([makePiece(8, "1", Buffer.from("{}"))])).rejects.toMatchObject({
      code: "STATE_RECORDS",
    });
  });
});
