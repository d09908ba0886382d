import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Child, put } from "../cli/cli-support.js";
import { ingress, service } from "../cli/objects.js";
import { ImageBuilder, layerFolder, noImages } from "../real/images/build.js";
import { readDockerfile } from "../real/images/dockerfile.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";

cleanUpAfterEach();

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = join(ROOT, "deploy/images");
const FILE = readDockerfile(readFileSync(join(FOLDER, "Dockerfile"), "utf8"));
const IGNORED = readFileSync(join(FOLDER, "Dockerfile.dockerignore"), "utf8").split("\n").filter(Boolean);
const why = process.getuid?.() === 0 ? noImages() : "only root can mount layers";
if (why !== undefined) console.warn(`images are not built: ${why}`);

describe.skipIf(why !== undefined)("an image, built instruction by instruction in layers over this machine,", () => {
  const { NJET_PREFIX } = process.env;
  const stands: Record<string, string> = NJET_PREFIX === undefined ? {} : { "tmlake/njet": publishedFrom(NJET_PREFIX) };
  let builder: ImageBuilder;

  beforeAll(() => {
    builder = new ImageBuilder(FILE, ROOT.slice(0, -1), IGNORED, stands);
  });
  afterAll(() => {
    builder.close();
    for (const folder of Object.values(stands)) rmSync(folder, { recursive: true, force: true });
  });

  /** Starts the image's own entry point and command as its user; nothing but /tmp can be written to. */
  async function started(target: string, ...options: string[]) {
    const image = await builder.build(target);
    const peer = closing(await httpPeer((_request, response) => response.end("served")));
    const objects = layerFolder();
    cleanup(() => rmSync(objects, { recursive: true, force: true }));
    put(objects, "objects/web.yaml", service("web", "127.0.0.1", peer.port));
    put(objects, "objects/shop.yaml", ingress("shop", "shop.example.com", "web"));
    const [tini, dashes, node, script] = image.entrypoint;
    expect([tini, dashes, node]).toEqual(["tini", "--", "node"]);
    chmodSync(objects, 0o755);
    const through = ["unshare", ...image.command([tini, dashes], objects)];
    const ports = ["--address=127.0.0.1", "--http-port=0", "--https-port=0", "--metrics-port=off"];
    const { PATH } = process.env;
    const env = { PATH, ...image.environment };
    const child = new Child(script, [...image.cmd, "--config-dir=/objects", ...ports, ...options], { through, env });
    // A process that takes another user outlives `unshare`; with the first one of the image all of it ends.
    cleanup(() => {
      for (const pid of descendants(child.process.pid as number)) killed(pid);
    });
    const line = await child.until("it serves", () => child.log().find(({ message }) => message === "serving"));
    return { image, child, http: (line as { http: number }).http };
  }

  /** Process numbers of all below one; none where it has ended. */
  function descendants(pid: number): number[] {
    const list = `/proc/${pid}/task/${pid}/children`;
    const children = (existsSync(list) ? readFileSync(list, "utf8") : "").split(" ").filter(Boolean).map(Number);
    return children.flatMap((child) => [child, ...descendants(child)]);
  }

  function killed(pid: number): void {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  const ids = (pid: number) => /^Uid:\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];

  it.each(["embedded", "nginx"])(
    "with %s, serves as its user, from files that it can't write, and ends on SIGTERM",
    async (target) => {
      const { child, http, image } = await started(target);
      expect((await ask(http, { host: "shop.example.com" })).body).toBe("served");
      const [first, ...others] = descendants(child.process.pid as number);
      expect(others.length).toBeGreaterThan(target === "nginx" ? 2 : 0);
      expect(new Set([first, ...others].map(ids))).toEqual(new Set(["65532"]));
      expect(image.done.filter((text) => text.startsWith("RUN")).length).toBeGreaterThan(0);
      expect(child.log().filter(({ level }) => level !== "info")).toEqual([]);
      // The first process of the image passes it on.
      process.kill(first, "SIGTERM");
      expect((await child.ended).status).toBe(0);
    },
    900_000,
  );

  it("with nginx, holds no compiler, no sources, no libraries of the build and no lists of packages", async () => {
    const image = await builder.build("nginx");
    const list = "cd /usr/lib/njet-kic && ls -A && ls node_modules && ls dist && ls -A /var/lib/apt/lists";
    const found = execFileSync("unshare", image.command(["sh", "-c", list]), { encoding: "utf8" }).split("\n");
    for (const name of ["commander", "undici", "yaml", "core.wasm", "native", "balancer"])
      expect(found).toContain(name);
    for (const name of ["typescript", "assemblyscript", "vitest", "test", "bench", "controller/cli"]) {
      expect(found).not.toContain(name);
    }
    expect(found.at(-2)).not.toMatch(/Packages|Release/);
  }, 900_000);

  it.skipIf(NJET_PREFIX === undefined)(
    "with opennjet, serves in the same way",
    async () => {
      const { child, http } = await started("opennjet");
      expect((await ask(http, { host: "shop.example.com" })).body).toBe("served");
      const [first] = descendants(child.process.pid as number);
      process.kill(first, "SIGTERM");
      expect((await child.ended).status).toBe(0);
    },
    900_000,
  );
  if (NJET_PREFIX === undefined)
    console.warn("the image with OpenNJet is not built: NJET_PREFIX names no installation");
});

/** A folder with an installation where the published image has it. */
function publishedFrom(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-published-"));
  cpSync(prefix, join(folder, "usr/local/njet"), { recursive: true, verbatimSymlinks: true });
  return folder;
}
