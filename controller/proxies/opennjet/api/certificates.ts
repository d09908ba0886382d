import type { ControlServer } from "./control-server.js";
import { PATHS } from "./paths.js";
import { list, map, object, optional, text } from "./shape.js";

export type CertificateType = "rsa" | "ecc" | "ntls";

/** A certificate for servers that have TLS. PEM is sent as it is, and is in no error. */
export interface ServerCertificate {
  /** Addresses as in `listen`. */
  listens: readonly string[];
  serverNames: readonly string[];
  type: CertificateType;
  /** PEM: the chain, leaf first. */
  certificate: string;
  /** PEM. */
  key: string;
}

/** The certificates of a server; `source` is a path, or `data:` where PEM was sent. */
export interface CertifiedServer {
  listens: string[];
  serverNames: string[];
  certificates: { type: string; source: string }[];
}

const PEM_SOURCE = "data:";

const CERTIFICATE = map(object({ cert_type: text, certificate: text }), ({ cert_type, certificate }) => ({
  type: cert_type,
  // What follows is the whole chain. The key beside it is not read at all.
  source: certificate.startsWith(PEM_SOURCE) ? PEM_SOURCE : certificate,
}));

const SERVERS = object({
  servers: list(
    map(
      object({ listens: list(text), serverNames: list(text), certificates: optional(list(CERTIFICATE)) }),
      ({ certificates = [], ...server }): CertifiedServer => ({ ...server, certificates }),
    ),
  ),
});

/**
 * `/v1/ssl`. A certificate that a server had once is refused for good (CertificateRepeatedError), even after `remove`: to go
 * back to an older one needs a map of files, or a new server.
 */
export class Certificates {
  constructor(private readonly control: ControlServer) {}

  /** Which server has certificates from where. Keys that OpenNJet shows are dropped at once. */
  async list(): Promise<CertifiedServer[]> {
    return (await this.control.read({ method: "GET", path: PATHS.certificate }, SERVERS)).servers;
  }

  add(certificate: ServerCertificate): Promise<void> {
    return this.put("add", certificate);
  }

  /** Does not bring back the certificate that was there before it. */
  remove(certificate: ServerCertificate): Promise<void> {
    return this.put("del", certificate);
  }

  private put(
    action: "add" | "del",
    { listens, serverNames, type, certificate, key }: ServerCertificate,
  ): Promise<void> {
    const info = {
      cert_type: type,
      certificate: PEM_SOURCE + certificate,
      certificateKey: PEM_SOURCE + key,
    };
    const body = { listens, serverNames, type: action, cert_info: info };
    return this.control.change({ method: "PUT", path: PATHS.certificate, body, secrets: [certificate, key] });
  }
}
