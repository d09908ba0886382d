import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A self-signed certificate and its key, PEM. */
export interface TestCertificate {
  chain: string;
  key: string;
}

/** Makes a certificate for the given names with the openssl command. */
export function makeCertificate(...names: string[]): TestCertificate {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-certificate-"));
  try {
    const key = join(folder, "key.pem");
    const chain = join(folder, "chain.pem");
    const subjectAltName = `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`;
    const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const output = ["-keyout", key, "-out", chain, "-days", "2", "-subj", "/CN=test", "-addext", subjectAltName];
    execFileSync("openssl", [...request, ...output], { stdio: "pipe" });
    return { chain: readFileSync(chain, "utf8"), key: readFileSync(key, "utf8") };
  } finally {
    rmSync(folder, { recursive: true });
  }
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
