import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Core } from "../../core-wasm/binding/core.js";
import { CoreError } from "../../core-wasm/binding/errors.js";
import { loadBundle } from "../../core-wasm/binding/load-bundle.js";
import { filterResource } from "../../core-wasm/hosts/envoy/resource.js";
import type { LintOutput } from "./lint.js";
import { writeWhole } from "./write-whole.js";

/** Options of `envoy-resource`. */
export interface EnvoyResourceOptions {
  /** Path of the file to write. */
  out: string;
  /** Path of envoy-filter.wasm on the machine of Envoy. */
  filter: string;
  /** Name of the filter in `http_filters`. */
  name: string;
  /** What the cluster header names. */
  clusters: "transport" | "upstream";
  /** File with the secret of those who may ask what would be decided. */
  decideSecretFile?: string;
}

/** A secret fits into a line of options and a header, and is not guessed. */
const SECRET = /^[\x21-\x7e]{16,256}$/;

/**
 * `envoy-resource`: writes the filter with a bundle as a file that Envoy watches, and a line about it to `out`. Resolves with
 * the exit status: 0 written; 2 the bundle is not sound, or a file can't be read or written. Then nothing has changed.
 */
export async function runEnvoyResource(
  core: Core,
  bundle: string,
  options: EnvoyResourceOptions,
  out: LintOutput,
  errors: LintOutput,
): Promise<number> {
  try {
    const bytes = await readFile(bundle);
    // Envoy would refuse it as well, but in its log.
    loadBundle(core, bytes).table.free();
    const secret = options.decideSecretFile === undefined ? undefined : await readSecret(options.decideSecretFile);
    const lines = [`clusters=${options.clusters}`, ...(secret === undefined ? [] : [`decide=${secret}`])];
    const { filter, name } = options;
    const version = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
    const resource = filterResource({ name, filter, bundle: bytes, options: lines, version });
    await writeWhole(options.out, resource, secret === undefined ? 0o644 : 0o600);
    out.write(`${options.out}: version ${version}, ${resource.length} bytes\n`);
    return 0;
  } catch (error) {
    const code = error instanceof CoreError ? ` (${error.code})` : "";
    errors.write(`${(error as Error).message}${code}\n`);
    return 2;
  }
}

async function readSecret(file: string): Promise<string> {
  const secret = (await readFile(file, "utf8")).trim();
  if (!SECRET.test(secret)) throw new Error(`${file}: a secret is 16 to 256 printable characters without a blank`);
  return secret;
}
