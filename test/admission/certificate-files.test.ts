import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CertificateFiles } from "../../controller/admission/certificate-files.js";
import { createLogger } from "../../controller/observability/logger.js";
import type { CertificatePair } from "../../controller/proxies/self-signed.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup, eventually } from "../support/harness.js";

cleanUpAfterEach();

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-admission-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Puts the files as Kubernetes does: in a folder of their own, to which a link is turned. */
function put(folder: string, { chain, key }: Pick<CertificatePair, "chain" | "key">): void {
  const data = mkdtempSync(join(folder, "..data-"));
  writeFileSync(join(data, "tls.crt"), chain);
  writeFileSync(join(data, "tls.key"), key);
  symlinkSync(data, join(folder, "..new"));
  renameSync(join(folder, "..new"), join(folder, "..data"));
  for (const name of ["tls.crt", "tls.key"]) {
    rmSync(join(folder, name), { force: true });
    symlinkSync(join("..data", name), join(folder, name));
  }
}

async function follow(folder: string, clientCa?: string) {
  const used: { chain: string; ca: unknown }[] = [];
  const log: string[] = [];
  const files = new CertificateFiles({
    folder,
    ...(clientCa === undefined ? {} : { clientCa }),
    logger: createLogger({ sink: { write: (line) => log.push(line) }, now: Date.now }),
    onChange: ({ ca }, chain) => used.push({ chain, ca }),
    intervalMs: 5,
  });
  cleanup(() => files.close());
  await files.start();
  return { used, log };
}

const [first, second] = [makeCertificate("first", "a.example.com"), makeCertificate("second", "a.example.com")];
const warnings = (log: string[]) => log.filter((line) => line.includes('"level":"warn"'));

it("a renewed certificate is used without a restart, and each one once", async () => {
  const folder = makeFolder();
  put(folder, first);
  const { used } = await follow(folder);
  expect(used.map(({ chain }) => chain)).toEqual([first.chain]);
  put(folder, second);
  await eventually(() => used.length > 1, 20_000);
  expect(used.map(({ chain }) => chain)).toEqual([first.chain, second.chain]);
});

it("files that are not there yet are waited for, and that is said once", async () => {
  const folder = makeFolder();
  const { used, log } = await follow(folder);
  expect(used).toEqual([]);
  put(folder, first);
  await eventually(() => used.length > 0, 20_000);
  expect(warnings(log).length).toBe(1);
  expect(warnings(log)[0]).toContain("does not exist or cannot be read");
});

it("a certificate and a key that do not fit each other leave the last good ones in use, and say nothing of the key", async () => {
  const folder = makeFolder();
  put(folder, first);
  const { used, log } = await follow(folder);
  put(folder, { chain: second.chain, key: first.key });
  await eventually(() => warnings(log).length > 0, 20_000);
  expect(used.length).toBe(1);
  expect(warnings(log)[0]).toContain("the last good one stays in use");
  for (const line of first.key.split("\n").slice(1, -2)) expect(log.join("")).not.toContain(line);
  put(folder, second);
  await eventually(() => used.length > 1, 20_000);
});

it("a file of client authorities without a certificate lets nobody in", async () => {
  const folder = makeFolder();
  put(folder, first);
  const ca = join(folder, "ca.crt");
  writeFileSync(ca, "none");
  const { used, log } = await follow(folder, ca);
  expect(used).toEqual([]);
  expect(warnings(log)[0]).toContain("client authorities");
  writeFileSync(`${ca}.new`, second.chain);
  renameSync(`${ca}.new`, ca);
  await eventually(() => used.length > 0, 20_000);
  expect(used[0].ca).toBe(second.chain);
});

it("a folder in the place of a file is a problem like any other", async () => {
  const folder = makeFolder();
  mkdirSync(join(folder, "tls.crt"));
  const { used, log } = await follow(folder);
  expect([used, warnings(log).length]).toEqual([[], 1]);
});
