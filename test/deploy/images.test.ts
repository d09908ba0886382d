import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Child, CLI, makeFolder, put } from "../cli/cli-support.js";
import { installation, noNginx } from "../nginx/installation.js";
import { readDockerfile, words } from "../real/images/dockerfile.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { objects } from "./manifests.js";

cleanUpAfterEach();

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = join(ROOT, "deploy/images");
const TEXT = readFileSync(join(FOLDER, "Dockerfile"), "utf8");
const FILE = readDockerfile(TEXT);
const IGNORED = readFileSync(join(FOLDER, "Dockerfile.dockerignore"), "utf8").split("\n").filter(Boolean);
const TARGETS = ["embedded", "nginx", "opennjet"];
const PACKAGE = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
const stages = new Map(FILE.stages.map((stage) => [stage.name, stage]));
const instructions = FILE.stages.flatMap((stage) => stage.instructions.map((one) => ({ stage, ...one })));

/** The packages that a stage installs, by name, with their versions. */
function packagesOf(stage: string): Record<string, string> {
  const runs = instructions.filter((one) => one.stage.name === stage && one.keyword === "RUN");
  const list = runs
    .map(({ text }) => /apt-get install -y --no-install-recommends ([^&]*)/.exec(text)?.[1] ?? "")
    .join(" ");
  return Object.fromEntries(
    list
      .split(/\s+/)
      .filter(Boolean)
      .map((entry) => entry.split("=") as [string, string]),
  );
}

describe("the Dockerfile", () => {
  it("builds upon images with tags that are versions, each of which may have a digest", () => {
    const images = FILE.stages.map(({ from }) => from).filter((from) => !stages.has(from));
    expect(images).toEqual(["node:22.20.0-bookworm-slim", "tmlake/njet:4.0.1"]);
    const digest = `sha256:${"0".repeat(64)}`;
    const exact = readDockerfile(TEXT.replaceAll(/^ARG (\w+)_DIGEST=$/gm, `ARG $1_DIGEST=${digest}`));
    expect(exact.stages.map(({ from }) => from).filter((from) => from.includes(":"))).toEqual(
      images.map((image) => `${image}@${digest}`),
    );
  });

  it("names no host of a registry", () => {
    expect(TEXT).not.toMatch(/https?:|\b[\w-]+\.(com|org|io|cn|net)\b/);
  });

  it("copies what is there: files of the project, or of an earlier stage", () => {
    for (const [i, { stage, keyword, text, flags }] of instructions.entries()) {
      if (keyword !== "COPY") continue;
      const [source] = text.split(" ");
      if (flags.from === undefined) expect([text, existsSync(join(ROOT, source))]).toEqual([text, true]);
      else {
        const names = FILE.stages.map(({ name }) => name);
        expect(names.indexOf(flags.from)).toBeGreaterThanOrEqual(0);
        expect(names.indexOf(flags.from)).toBeLessThan(names.indexOf(stage.name));
        expect(instructions.slice(0, i).some((one) => one.stage.name === flags.from)).toBe(true);
      }
    }
  });

  it("leaves out of the build what is made by it, and the history", () => {
    expect(IGNORED).toEqual([".git", "dist", "node_modules"]);
  });

  it.each(TARGETS)("ends %s with a user of a number, who is not root, and whom the manifests name", (name) => {
    const [user] = instructions.filter(({ stage, keyword }) => stage.name === name && keyword === "USER").slice(-1);
    expect(user.text).toBe("65532:65532");
    const manifest = readFileSync(join(ROOT, "deploy/manifests/deployment.yaml"), "utf8");
    expect(manifest).toContain("runAsUser: 65532\n");
    expect(manifest).toContain("runAsGroup: 65532\n");
    expect(manifest).toContain(`image: njet-kic:${PACKAGE.version}\n`);
  });

  it("pins what it installs to versions, and leaves no lists behind", () => {
    for (const stage of ["build", "controller", "nginx"]) {
      const packages = Object.entries(packagesOf(stage));
      expect(packages.length).toBeGreaterThan(0);
      for (const [name, version] of packages)
        expect([name, version]).toEqual([name, expect.stringMatching(/^[\d:.]+\d[.-]\*$/)]);
    }
    for (const { keyword, text } of instructions) {
      if (keyword === "RUN" && text.includes("apt-get")) expect(text).toMatch(/rm -rf \/var\/lib\/apt\/lists\/\*$/);
    }
  });

  it("installs for NGINX the packages that are also unpacked where none is installed", () => {
    const script = readFileSync(join(ROOT, "deploy/debian/nginx.mjs"), "utf8");
    const list = /const PACKAGES = \[([^\]]*)\]/.exec(script)?.[1] ?? "";
    expect(Object.keys(packagesOf("nginx"))).toEqual(list.match(/[\w.-]+(?=")/g));
  });

  it("starts the command, as the first process but one", () => {
    const [entry] = instructions.filter(({ keyword }) => keyword === "ENTRYPOINT");
    expect(words(entry)).toEqual(["tini", "--", "node", "/usr/lib/njet-kic/dist/controller/cli/main.js"]);
    const commands = instructions.filter(({ keyword }) => keyword === "CMD").map(words);
    expect(commands).toEqual([["run"], ["run"], ["run"]]);
  });

  it("has each target drive its own proxy, also where a Deployment gives the arguments", async () => {
    const proxyOf = (target: string) => {
      const texts = instructions.filter(({ stage, keyword }) => stage.name === target && keyword === "ENV");
      return /NJET_KIC_PROXY=(\w+)/.exec(texts.map(({ text }) => text).join(" "))?.[1];
    };
    expect(TARGETS.map(proxyOf)).toEqual([undefined, "nginx", "opennjet"]);
    const [container] = objects.find(({ kind }) => kind === "Deployment").spec.template.spec.containers;
    const args = [
      ...container.args,
      "--http-port=0",
      "--https-port=0",
      "--metrics-port=off",
      "--config-dir",
      makeFolder(),
    ];
    // It is told by the part that it misses.
    for (const [proxy, part, code] of [
      ["nginx", "--nginx=/no/such/nginx", "NGINX_UNUSABLE"],
      ["opennjet", "--opennjet-prefix=/no/such/njet", "OPENNJET_MISSING"],
    ]) {
      const { stderr } = await new Child(CLI, [...args, part], { env: { ...process.env, NJET_KIC_PROXY: proxy } })
        .ended;
      expect(stderr).toContain(code);
    }
  });
});

describe("a reader of Dockerfiles", () => {
  it.each([
    ["RUN true\n", "before the first stage"],
    ["FROM a:1\n", "a stage without a name"],
    ["FROM a:${TAG} AS b\n", "there is no argument TAG"],
    ["from a:1 AS b\n", "no instruction"],
  ])("refuses %j", (text, reason) => {
    expect(() => readDockerfile(text)).toThrow(reason);
  });
});

describe.skipIf(noNginx)("the script that brings OpenNJet over", () => {
  it("takes the installation and the libraries of its programs along, and neither the C library nor file capabilities", async () => {
    const { binary } = await installation();
    const prefix = makeFolder();
    for (const name of ["sbin", "modules", "lib", "src"]) mkdirSync(join(prefix, name));
    // A program that needs more than the C library stands in for OpenNJet's.
    copyFileSync(binary, join(prefix, "sbin/njet"));
    chmodSync(join(prefix, "sbin/njet"), 0o755);
    put(prefix, "modules/one.lua", "return 1\n");
    put(prefix, "lib/real.so.1", "no library\n");
    symlinkSync("real.so.1", join(prefix, "lib/real.so"));
    put(prefix, "src/main.c", "not needed\n");
    const target = join(makeFolder(), "target");
    execFileSync("sh", [join(FOLDER, "opennjet-files.sh"), prefix, target]);
    expect(readdirSync(target).sort()).toEqual(["lib", "modules", "sbin"]);
    expect(lstatSync(join(target, "lib/real.so")).isSymbolicLink()).toBe(true);
    const libraries = readdirSync(join(target, "lib"));
    expect(libraries).toEqual(
      expect.arrayContaining([expect.stringMatching(/^libpcre/), expect.stringMatching(/^libz\.so/)]),
    );
    expect(libraries.filter((name) => /^(libc|libm|libcrypt|libpthread|ld-linux.*)\.so/.test(name))).toEqual([]);
    const needed = execFileSync("ldd", [join(target, "sbin/njet")], {
      encoding: "utf8",
      env: { LD_LIBRARY_PATH: join(target, "lib") },
    });
    expect(needed).toContain(`=> ${join(target, "lib")}/libz.so`);
  });
});
