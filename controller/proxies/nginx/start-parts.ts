/** What a server is given before it starts: a default certificate and its ports. */
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { selfSigned } from "../self-signed.js";
import type { NginxListener } from "./configured-values.js";
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

/** The port of a listener; for 0 one that is free now. NGINX itself can't choose. */
export function portOf({ address, port }: NginxListener): Promise<number> {
  if (port !== 0) return Promise.resolve(port);
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host: address, port: 0 }, () => {
      const found = server.address();
      server.close(() => resolve(typeof found === "object" && found !== null ? found.port : 0));
    });
  });
}
