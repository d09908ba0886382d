import { readFileSync } from "node:fs";
import { selfSigned } from "../self-signed.js";
import type { NginxFolder } from "./run-folder.js";

const DAY = 86_400_000;

/** Puts the default certificate where NGINX finds it when it starts: the given one, the one of before, or a new one. */
export function keepCertificate(
  folder: NginxFolder,
  given: { chain: string; key: string } | undefined,
): { chain: string; key: string } {
  const { certificateFile, certificateKeyFile } = folder;
  let pair = given;
  if (pair === undefined) {
    try {
      pair = { chain: readFileSync(certificateFile, "utf8"), key: readFileSync(certificateKeyFile, "utf8") };
    } catch {
      const now = Date.now();
      const names = { commonName: "default certificate", hosts: ["localhost"] };
      pair = selfSigned({ ...names, notBefore: now - DAY, notAfter: now + 3650 * DAY });
    }
  }
  folder.write(certificateFile, pair.chain);
  folder.write(certificateKeyFile, pair.key);
  return { chain: pair.chain, key: pair.key };
}
