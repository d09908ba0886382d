/**
 * Builds a stage of a Dockerfile without a Docker engine: each instruction is carried out in layers over this machine's own file
 * system, which stands in for the base image where it is of the same Debian. Needs root, and overlay mounts in a mount namespace.
 */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Dockerfile, ImageStage, Instruction } from "./dockerfile.js";
import { words } from "./dockerfile.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const BESIDE = dirname(ROOT);
/** What is not of the base image that this machine stands in for: temporary files, caches, and the project with what is beside it. */
const MASKED = ["/tmp", join(homedir(), ".cache"), BESIDE === "/" ? ROOT : BESIDE];
/** As Debian's images have it: what is installed does not start. */
const POLICY = "#!/bin/sh\nexit 101\n";
/**
 * In a mount and process namespace of its own, with the layers $1 (lower ones, the upper one and its work folder, or two empty
 * texts for a file system that can't be written to): runs what follows the second argument.
 */
const ENTER = `set -e
lower=$1 upper=$2 work=$3; shift 3
root=/mnt
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$lower\${upper:+,upperdir=$upper,workdir=$work}" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for path in ${MASKED.map((path) => `'${path}'`).join(" ")}; do if [ -d "$root$path" ]; then mount -t tmpfs -o mode=1777 tmpfs "$root$path"; fi; done
exec chroot`;

/** A new folder for a layer: on another file system than this machine's own, since layers may not be part of each other. */
export function layerFolder(): string {
  return mkdtempSync("/dev/shm/njet-kic-image-");
}

/** Why images can't be built here; undefined where they can. */
export function noImages(): string | undefined {
  if (!existsSync("/dev/shm")) return "there is no /dev/shm for layers";
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  if (!/^VERSION_CODENAME=bookworm$/m.test(release))
    return "this machine can't stand in for an image of Debian bookworm";
  const folder = layerFolder();
  try {
    const [upper, work] = [layer(folder, "upper"), layer(folder, "work")];
    const { status, stderr } = spawnSync("unshare", enter("/", upper, work, ["true"]), { encoding: "utf8" });
    return status === 0 ? undefined : `no layers can be mounted: ${stderr.trim()}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export interface BuiltImage {
  /** Arguments for `unshare`, by which a command runs in the image: nothing but /tmp can be written to. `also`: a layer over it. */
  command(command: readonly string[], also?: string): string[];
  user: string;
  environment: Record<string, string>;
  entrypoint: string[];
  cmd: string[];
  /** Instructions that were carried out, as they are written; those of the stages below come first. */
  done: string[];
}

interface Built extends BuiltImage {
  /** Folders with what each stage adds, the uppermost first; the machine itself is the last one. */
  layers: string[];
}

export class ImageBuilder {
  private readonly folder = layerFolder();
  private readonly built = new Map<string, Built>();

  /** `stands`: for images that this machine can't stand in for, a folder with what is used of them. */
  constructor(
    private readonly file: Dockerfile,
    private readonly context: string,
    private readonly ignored: readonly string[],
    private readonly stands: Record<string, string> = {},
  ) {}

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Builds a stage and those that it needs, each once. Rejects with what an instruction said that failed. */
  async build(name: string): Promise<BuiltImage> {
    const known = this.built.get(name);
    if (known !== undefined) return known;
    const stage = this.file.stages.find((one) => one.name === name);
    if (stage === undefined) throw new Error(`there is no stage ${name}`);
    const built = await this.begun(stage);
    this.built.set(name, built);
    let workdir = "/";
    for (const one of stage.instructions) {
      if (one.keyword === "RUN") await this.run(built, one, workdir);
      else if (one.keyword === "COPY") await this.copy(built, one, workdir);
      else if (one.keyword === "WORKDIR") {
        workdir = one.text;
        mkdirSync(join(built.layers[0], workdir), { recursive: true });
      } else if (one.keyword === "USER") built.user = one.text;
      else if (one.keyword === "ENV") {
        const [key, value] = one.text.split(/=(.*)/s);
        built.environment[key] = value;
      } else if (one.keyword === "ENTRYPOINT") built.entrypoint = words(one);
      else if (one.keyword === "CMD") built.cmd = words(one);
      else throw new Error(`${one.keyword} is not known here`);
      built.done.push(`${one.keyword} ${one.text}`);
    }
    return built;
  }

  private async begun(stage: ImageStage): Promise<Built> {
    const own = layer(this.folder, `${stage.name}-layer`);
    const isStage = this.file.stages.some(({ name }) => name === stage.from);
    if (isStage) await this.build(stage.from);
    const base = this.built.get(stage.from);
    if (base === undefined) {
      mkdirSync(join(own, "usr/sbin"), { recursive: true });
      writeFileSync(join(own, "usr/sbin/policy-rc.d"), POLICY, { mode: 0o755 });
      const stand = Object.entries(this.stands).find(([image]) => stage.from.startsWith(`${image}:`));
      if (stand !== undefined) cpSync(stand[1], own, { recursive: true, verbatimSymlinks: true });
    }
    const layers = [own, ...(base?.layers ?? ["/"])];
    return {
      layers,
      command: (command, also) => {
        const lower = [...(also === undefined ? [] : [also]), ...layers].join(":");
        return enter(lower, "", "", command, this.built.get(stage.name)?.user);
      },
      user: base?.user ?? "0:0",
      environment: { ...base?.environment },
      entrypoint: base?.entrypoint ?? [],
      cmd: base?.cmd ?? [],
      done: [...(base?.done ?? [])],
    };
  }

  private async run(built: Built, { text }: Instruction, workdir: string): Promise<void> {
    await this.inside(built, ["sh", "-c", `cd '${workdir}' && ${text.startsWith("!") ? `{ ${text}; }` : text}`], text);
  }

  private async copy(built: Built, { text, flags }: Instruction, workdir: string): Promise<void> {
    const [source, target, rest] = text.split(/\s+/);
    if (target === undefined || rest !== undefined) throw new Error(`COPY with other than two paths: ${text}`);
    const to = join(built.layers[0], target.startsWith("/") ? target : join(workdir, target));
    const into = target.endsWith("/") && source !== "." ? join(to, basename(source)) : to;
    mkdirSync(dirname(into), { recursive: true });
    if (flags.from === undefined) {
      const kept = (path: string) => !this.ignored.includes(relative(this.context, path));
      cpSync(join(this.context, source), into, { recursive: true, verbatimSymlinks: true, filter: kept });
      return;
    }
    await this.build(flags.from);
    const from = this.built.get(flags.from) as Built;
    const found = from.layers.map((path) => join(path, source)).find(existsSync);
    if (found === undefined) throw new Error(`COPY of what is not there: ${text}`);
    if (statSync(found).isDirectory()) mkdirSync(into, { recursive: true });
    cpSync(found, into, { recursive: true, verbatimSymlinks: true });
  }

  private inside(built: Built, command: readonly string[], what: string): Promise<void> {
    const [upper, ...lower] = built.layers;
    const work = layer(this.folder, `${basename(upper)}-work`);
    const env = { ...process.env, ...built.environment, HOME: "/root", DEBIAN_FRONTEND: "noninteractive" };
    const child = spawn("unshare", enter(lower.join(":"), upper, work, command, built.user), { env });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
      });
    }
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => {
        if (status === 0) resolve();
        else reject(new Error(`RUN ${what} ended with ${status}: ${said.slice(-3000)}`));
      });
    });
  }
}

function layer(folder: string, name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

function enter(lower: string, upper: string, work: string, command: readonly string[], user = "0:0"): string[] {
  const through = ["sh", "-c", `${ENTER} --userspec="${user}" "$root" "$@"`, "sh", lower, upper, work];
  return ["-mpf", "--kill-child", ...through, ...command];
}
