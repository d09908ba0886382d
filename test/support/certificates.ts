import { type CertificatePair, selfSigned } from "../../controller/proxies/self-signed.js";

const HOUR = 3_600_000;

/** A certificate for `hosts`, made now; `commonName` tells it apart in assertions. */
export function makeCertificate(commonName: string, ...hosts: string[]): CertificatePair {
  const now = Date.now();
  return selfSigned({ commonName, hosts, notBefore: now - HOUR, notAfter: now + 24 * HOUR });
}

/** A pair whose key is too short (512 bits) for any TLS library of today; each of them can read it. */
export const WEAK: CertificatePair = {
  chain: `-----BEGIN CERTIFICATE-----
MIIBdzCCASGgAwIBAgIUW9huavn/EMr0QdiS9OY0wgsbO2IwDQYJKoZIhvcNAQEF
BQAwDzENMAsGA1UEAwwEd2VhazAgFw0yNjEyMDMwODQ4MThaGA8yMTI2MTEwOTA4
NDgxOFowDzENMAsGA1UEAwwEd2VhazBcMA0GCSqGSIb3DQEBAQUAA0sAMEgCQQC9
2/beiuWUPIalZDFSMO/2l52kp3m1fgX33p2/Oj1UboUMefwSAtaTp14apSsRsosZ
b5tnhCetRWkrofhrOeHhAgMBAAGjUzBRMB0GA1UdDgQWBBTpvXNmYJghH1KEtysb
gmWeVd5w5DAfBgNVHSMEGDAWgBTpvXNmYJghH1KEtysbgmWeVd5w5DAPBgNVHRMB
Af8EBTADAQH/MA0GCSqGSIb3DQEBBQUAA0EAB9Za6YZtCXgIfxBgLq+JjtVxpStd
lsNRnPnsiuXaGL2tjjV4LJjti2EAEF3jvVS5UL5NRPfJTvQ+xVIzsqQZjg==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIIBUwIBADANBgkqhkiG9w0BAQEFAASCAT0wggE5AgEAAkEAvdv23orllDyGpWQx
UjDv9pedpKd5tX4F996dvzo9VG6FDHn8EgLWk6deGqUrEbKLGW+bZ4QnrUVpK6H4
aznh4QIDAQABAkAmoxH9PfT0ktCv7dDfshfTbg1lybNKDQh35fTiSp7ahH1pFKPD
xUEA3Wmgi5PbzLznccqr/LTCu6OPElQK0JMxAiEA6f1iHfVw5dDvEKKMUteLFPkG
oNBCMmzjvwTJ4UxAfcUCIQDPt+QBpwCGjc+xCG/7Ha1K71qtM7Ths+0SADAnTKVR
bQIgHwpkF8FVpscez8AgiWTaqH+Yp4C5J2NWmyKRfXfWHlkCIA3H6Xyik8pZhjn8
kVFbuq+KCb4L/CgtQ8E5+ffhgeZRAiAxWGwPc7Uqpz1hv2urYjHdeP/MmdYax3xK
votf+QI+WQ==
-----END PRIVATE KEY-----
`,
  fingerprint: "weak",
};
