import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Logger } from "../observability/logger.js";

export interface CertificateFilesOptions {
  /** Holds `tls.crt` and `tls.key`, PEM. */
  folder: string;
  /** PEM file of the authorities whose clients are let in. Undefined: any client is. */
  clientCa?: string;
  logger: Logger;
  /** Told of each new set of files that can be used; `chain` is the certificate, leaf first. */
  onChange: (context: SecureContextOptions, chain: string) => void;
  /** How often the files are read; 10 seconds by default. */
  intervalMs?: number;
}

const INTERVAL_MS = 10_000;
const MIN_TLS_VERSION = "TLSv1.2";

/**
 * Follows the files of a certificate, which are renewed while they are in use. They are read again and again, not watched:
 * Kubernetes renews the files of a Secret by turning a symbolic link, and a network mount tells of no change. Files that
 * are missing, or do not fit each other, as in the middle of a renewal, leave the last good ones in use.
 */
export class CertificateFiles {
  readonly #options: CertificateFilesOptions;
  #used = "";
  #complaint = "";
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  /** Reads the files and goes on reading them. Resolves after the first time, whether they can be used or not. */
  async start(): Promise<void> {
    await this.#read();
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.start(), this.#options.intervalMs ?? INTERVAL_MS);
    this.#timer.unref();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #read(): Promise<void> {
    const { folder, clientCa, logger, onChange } = this.#options;
    try {
      const chain = await readText(join(folder, "tls.crt"));
      const key = await readText(join(folder, "tls.key"));
      const ca = clientCa === undefined ? undefined : await readText(clientCa);
      const content = JSON.stringify([chain, key, ca]);
      this.#complaint = "";
      if (this.#closed || content === this.#used) return;
      const context: SecureContextOptions = { cert: chain, key, minVersion: MIN_TLS_VERSION, ...(ca && { ca }) };
      check(context, chain, ca);
      onChange(context, chain);
      logger.info("validating webhook: certificate in use", { validTo: new X509Certificate(chain).validTo });
      this.#used = content;
    } catch (error) {
      const problem = (error as Error).message;
      if (problem === this.#complaint || this.#closed) return;
      this.#complaint = problem;
      const state = this.#used === "" ? "without one no handshake succeeds" : "the last good one stays in use";
      logger.warn(`validating webhook: the certificate cannot be used; ${state}`, { problem });
    }
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch {
    throw new Error(`${file} does not exist or cannot be read`);
  }
}

/** Throws an Error that says nothing of what the files hold. */
function check(context: SecureContextOptions, chain: string, ca: string | undefined): void {
  try {
    new X509Certificate(chain);
    createSecureContext(context);
  } catch {
    throw new Error("tls.crt and tls.key are no PEM certificate with its key");
  }
  if (ca === undefined) return;
  try {
    new X509Certificate(ca);
  } catch {
    throw new Error("the file of the client authorities holds no PEM certificate");
  }
}
