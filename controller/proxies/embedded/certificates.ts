import { createSecureContext, type SecureContext } from "node:tls";
import type { Certificate } from "../../model/types.js";

interface Entry {
  fingerprint: string;
  context: SecureContext;
}

/** Oldest protocol that listeners speak; each context states it again because OpenSSL keeps it per context. */
export const MIN_TLS_VERSION = "TLSv1.2";

/**
 * Certificates by host name: exact, or `*.x` for one label below x. A context is made when a certificate is set,
 * so that a bad one is found then and the one before stays in force.
 */
export class CertificateStore {
  private readonly byHost = new Map<string, Entry>();
  /** One context for all hosts of one certificate. */
  private readonly contexts = new Map<string, { context: SecureContext; hosts: number }>();

  /** True if what new handshakes get has changed. Throws where chain or key can't be used. */
  set(certificate: Certificate): boolean {
    const before = this.byHost.get(certificate.host);
    if (before?.fingerprint === certificate.fingerprint) return false;
    let shared = this.contexts.get(certificate.fingerprint);
    if (shared === undefined) {
      // Node takes an empty one for "not given" and makes a context that fails every handshake.
      if (certificate.chain === "" || certificate.key === "") throw new Error("certificate or key is empty");
      const context = createSecureContext({
        cert: certificate.chain,
        key: certificate.key,
        minVersion: MIN_TLS_VERSION,
      });
      shared = { context, hosts: 0 };
      this.contexts.set(certificate.fingerprint, shared);
    }
    shared.hosts++;
    if (before !== undefined) this.release(before.fingerprint);
    this.byHost.set(certificate.host, { fingerprint: certificate.fingerprint, context: shared.context });
    return true;
  }

  /** True if there was one. */
  remove(host: string): boolean {
    const entry = this.byHost.get(host);
    if (entry === undefined) return false;
    this.byHost.delete(host);
    this.release(entry.fingerprint);
    return true;
  }

  /** The context for a server name as sent; undefined means the default certificate. */
  find(serverName: string): SecureContext | undefined {
    const host = serverName.toLowerCase();
    const exact = this.byHost.get(host);
    if (exact !== undefined) return exact.context;
    const dot = host.indexOf(".");
    return dot > 0 ? this.byHost.get(`*${host.slice(dot)}`)?.context : undefined;
  }

  hosts(): string[] {
    return [...this.byHost.keys()];
  }

  private release(fingerprint: string): void {
    const shared = this.contexts.get(fingerprint);
    if (shared !== undefined && --shared.hosts === 0) this.contexts.delete(fingerprint);
  }
}
