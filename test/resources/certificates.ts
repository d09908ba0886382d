import { makeCertificate as makePair } from "../support/certificates.js";

/** A self-signed certificate and its key, PEM. */
export interface TestCertificate {
  chain: string;
  key: string;
}

/** Makes a certificate for the given names. */
export function makeCertificate(...names: string[]): TestCertificate {
  const { chain, key } = makePair("test", ...names);
  return { chain, key };
}

/** A Secret of type kubernetes.io/tls. */
export function tlsSecret(name: string, certificate: Partial<TestCertificate>, namespace = "default") {
  const encode = (text: string | undefined) => text && Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type: "kubernetes.io/tls",
    data: { "tls.crt": encode(certificate.chain), "tls.key": encode(certificate.key) },
  };
}
