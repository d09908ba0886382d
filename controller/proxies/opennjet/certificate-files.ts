import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

const MODE = 0o600;
const SUFFIX = ".pem";

/** Chain and key of a host, both PEM. */
export interface CertificatePair {
  chain: string;
  key: string;
}

/**
 * The files that a map of certificates names: one for each host, with chain and key in it, so that none is of another renewal
 * than the other. Its path follows from the host alone. Mode 0600.
 */
export class CertificateFiles {
  /** `folder`: absolute; plain enough to stand in a configuration. `owner`: of the files, where it is not us. */
  constructor(
    private readonly folder: string,
    private readonly owner?: { uid: number; gid: number },
  ) {}

  /** Path for a host. Says nothing of the host, so that no character of it can matter. */
  pathOf(host: string): string {
    return join(this.folder, `${createHash("sha256").update(host).digest("hex").slice(0, 32)}${SUFFIX}`);
  }

  /** True if the file of a host holds exactly that pair. */
  async holds(host: string, pair: CertificatePair): Promise<boolean> {
    try {
      return (await readFile(this.pathOf(host), "utf8")) === contentOf(pair);
    } catch {
      return false;
    }
  }

  /** Puts a pair in the place of that of before, whole. */
  async write(host: string, pair: CertificatePair): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const path = this.pathOf(host);
    const made = `${path}.${randomBytes(6).toString("hex")}`;
    try {
      const file = await open(made, "wx", MODE);
      try {
        if (this.owner !== undefined) await file.chown(this.owner.uid, this.owner.gid);
        await file.writeFile(contentOf(pair));
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(made, path);
    } catch (error) {
      await rm(made, { force: true });
      throw error;
    }
  }

  /** Takes all files away but those of `hosts`. */
  async keepOnly(hosts: Iterable<string>): Promise<void> {
    const kept = new Set([...hosts].map((host) => this.pathOf(host)));
    const names = await readdir(this.folder).catch(() => []);
    for (const name of names) {
      const path = join(this.folder, name);
      if (!kept.has(path)) await rm(path, { force: true });
    }
  }
}

function contentOf({ chain, key }: CertificatePair): string {
  return `${chain.trim()}\n${key.trim()}\n`;
}
