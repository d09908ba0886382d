/** What a server is given before it starts: a default certificate and its ports. */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { errorCode } from "../../observability/logger.js";
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

/**
 * Where ports for 0 are looked for: below those that systems give to connections that go out (from 32,768 on with Linux), for such
 * a connection could have the port before NGINX listens on it.
 */
const [LOWEST_FREE, HIGHEST_FREE] = [16_384, 32_768];
/** Ports that are tried before the start is given up. */
const TRIES = 64;

/** The port of a listener; for 0 one that is free now. NGINX itself can't choose. */
export async function portOf({ address, port }: NginxListener): Promise<number> {
  if (port !== 0) return port;
  for (let tried = 1; ; tried++) {
    const candidate = randomInt(LOWEST_FREE, HIGHEST_FREE);
    try {
      await probe(address, candidate);
      return candidate;
    } catch (error) {
      if (errorCode(error) !== "EADDRINUSE" || tried === TRIES) throw error;
    }
  }
}

/** Rejects where nobody can listen there. */
function probe(host: string | undefined, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ host, port }, () => server.close(() => resolve()));
  });
}
