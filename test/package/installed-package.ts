import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What `npm publish` would upload, and an empty project into which it is installed. */
export interface InstalledPackage {
  /** Folder of the project. */
  project: string;
  /** Bytes of the tarball. */
  tarball: Buffer;
  /** Paths of the files of the package. */
  files: string[];
  /** Runs a program of Node in the project and returns what it prints; throws where it fails. */
  run(...args: string[]): string;
  remove(): void;
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync("npm", args, { cwd, encoding: "utf8" });
}

/**
 * Packs this checkout and installs the tarball, from npm's cache where that has the dependencies. With `dependencies` false
 * those of the commands are left out: `njet-kic/core` needs none.
 */
export function installPackage(dependencies = true): InstalledPackage {
  const project = mkdtempSync(join(tmpdir(), "njet-kic-package-"));
  const [{ filename, files }] = JSON.parse(npm(ROOT, "pack", "--json", "--pack-destination", project));
  const tarball = join(project, filename);
  writeFileSync(join(project, "package.json"), '{ "name": "consumer", "private": true, "type": "module" }');
  if (dependencies) npm(project, "install", "--prefer-offline", "--no-audit", "--no-fund", tarball);
  else {
    const folder = join(project, "node_modules/njet-kic");
    execFileSync("mkdir", ["-p", folder]);
    execFileSync("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"]);
  }
  return {
    project,
    tarball: readFileSync(tarball),
    files: files.map(({ path }: { path: string }) => path),
    run: (...args) => execFileSync(process.execPath, args, { cwd: project, encoding: "utf8" }),
    remove: () => rmSync(project, { recursive: true, force: true }),
  };
}
