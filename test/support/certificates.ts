import { type CertificatePair, selfSigned } from "../../controller/proxies/self-signed.js";

const HOUR = 3_600_000;

/** A certificate for `hosts`, made now; `commonName` tells it apart in assertions. */
export function makeCertificate(commonName: string, ...hosts: string[]): CertificatePair {
  const now = Date.now();
  return selfSigned({ commonName, hosts, notBefore: now - HOUR, notAfter: now + 24 * HOUR });
}
