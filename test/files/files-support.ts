import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach } from "vitest";
import { type FolderOptions, FolderSource } from "../../controller/files/folder-source.js";
import type { ObjectChange } from "../../controller/model/routing-model.js";
import { refText } from "../../controller/resources/object-ref.js";

const cleanups: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A folder of its own for one test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-files-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function put(folder: string, file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), text);
}

/** Replaces a file as editors do: a new file takes its name. */
export function replace(folder: string, file: string, text: string): void {
  put(folder, `.${file}.new`, text);
  renameSync(join(folder, `.${file}.new`), join(folder, file));
}

/** An Ingress called `name`; `host` makes its versions differ. */
export function ingress(name: string, host = `${name}.example.com`): string {
  return `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ${name}}
spec:
  rules: [{host: ${host}}]
`;
}

/** A folder source with what it delivered so far. */
export class Watched {
  readonly batches: ObjectChange[][] = [];
  readonly source: FolderSource;
  /** Objects in force, by name. */
  readonly objects = new Map<string, unknown>();

  constructor(folder: string, options: Partial<FolderOptions> = {}) {
    this.source = new FolderSource(
      folder,
      (changes) => {
        this.batches.push(changes);
        for (const change of changes) {
          if (change.object === undefined) this.objects.delete(refText(change));
          else this.objects.set(refText(change), change.object);
        }
      },
      options,
    );
    cleanups.push(() => this.source.close());
  }

  names(): string[] {
    return [...this.objects.keys()].map((name) => name.slice(name.lastIndexOf("/") + 1)).sort();
  }

  hostOf(name: string, namespace = "default"): string | undefined {
    const object = this.objects.get(`Ingress/${namespace}/${name}`) as
      | { spec: { rules: { host: string }[] } }
      | undefined;
    return object?.spec.rules[0].host;
  }

  problems(): string[] {
    return this.source
      .problems()
      .map(({ file, line, code }) => `${file}${line === undefined ? "" : `:${line}`} ${code}`);
  }
}

/** Starts to watch a folder. */
export async function watchFolder(folder: string, options: Partial<FolderOptions> = {}): Promise<Watched> {
  const watched = new Watched(folder, options);
  await watched.source.start();
  return watched;
}

/** Waits until `done` holds, and returns how long that took in milliseconds. Fails after two seconds. */
export async function until(done: () => boolean): Promise<number> {
  const start = performance.now();
  while (!done()) {
    if (performance.now() - start > 2000) throw new Error("waited for two seconds in vain");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return performance.now() - start;
}

/** Long enough for any event to have its effect. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 150));
}
