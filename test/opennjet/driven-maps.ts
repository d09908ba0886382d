/** The map of certificates of a double of OpenNJet, kept in step by a clock that stands still; handshakes are real ones. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLogger } from "../../controller/observability/logger.js";
import { OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { CertificateFiles } from "../../controller/proxies/opennjet/certificate-files.js";
import { CertificateMaps, type MapsApi } from "../../controller/proxies/opennjet/certificate-maps.js";
import { CERTIFICATE_MAPS, certificateTable } from "../../controller/proxies/opennjet/certificate-table.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import type { MapSwitch } from "../../controller/proxies/opennjet/map-switch.js";
import { makeFolder } from "../cli/cli-support.js";
import { OpenNjetDouble } from "../real/opennjet-double/index.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanup, closing, eventually } from "../support/harness.js";
import { ManualClock } from "../support/manual-clock.js";
import { servedCertificate } from "../support/raw-client.js";

const TLS = "0.0.0.0:443";
const PATIENCE = 30_000;

export interface DrivenMapsOptions {
  /** Workers that answer by themselves until they are told of a version; without, they have nothing but the map. */
  workers?: MapSwitch;
  mostHosts?: number;
  /** `map_hash_bucket_size`. */
  mapBucket?: number;
  /** What stands between. */
  around?: (maps: MapsApi) => MapsApi;
}

/** One worker, and a map that names nobody; nothing is done before `certificates.start()`. */
export async function drivenMaps(options: DrivenMapsOptions = {}) {
  const { workers, mostHosts, mapBucket = 512, around = (maps: MapsApi) => maps } = options;
  const own = makeFolder();
  const pair = makeCertificate("default", "default.example.com");
  const others = { chain: join(own, "chain.pem"), key: join(own, "key.pem") };
  writeFileSync(others.chain, pair.chain);
  writeFileSync(others.key, pair.key, { mode: 0o600 });
  const tls = { certificate: `$${CERTIFICATE_MAPS.certificate}`, key: `$${CERTIFICATE_MAPS.key}` };
  const server = { listens: [TLS], names: [LOCATIONS_SERVER_NAME], tls, body: "location / { return 404; }" };
  const { maps } = certificateTable(new Map(), others);
  const declared = maps.map((map) => (map.keyTo === `$${CERTIFICATE_MAPS.version}` ? { ...map, values: [] } : map));
  const configuration = { servers: [server], maps: declared, mapBucket };
  const double = closing(await OpenNjetDouble.start({ configuration, workers: 1 }));
  const api = new OpenNjetApi({ origin: double.origin });
  // A proxy over it may have closed it.
  cleanup(() => api.close().catch(() => undefined));
  const folder = join(makeFolder(), "certificates");
  const clock = new ManualClock();
  const said: string[] = [];
  const logger = createLogger({
    sink: { write: (line) => said.push((JSON.parse(line) as { message: string }).message) },
    now: Date.now,
  });
  const certificates = new CertificateMaps({
    maps: around(api.maps),
    files: new CertificateFiles(folder),
    workers,
    others,
    logger,
    clock,
    ...(mostHosts !== undefined && { mostHosts }),
  });
  cleanup(() => certificates.stop());
  return {
    double,
    api,
    certificates,
    clock,
    logger,
    /** Messages of the log. */
    said,
    /** The changes that the control API was asked for. */
    puts: () => double.requests.length,
    files: () => readdirSync(folder),
    /** What stands in the files, each. */
    contents: () => readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8")),
    /** Names of the hosts that the map of a worker has. */
    hosts: () =>
      double.plane.workers[0].maps
        .find(({ keyTo }) => keyTo === `$${CERTIFICATE_MAPS.certificate}`)
        ?.values.map(({ valueFrom }) => valueFrom)
        .filter((name) => name !== "default"),
    /** Common name of what a handshake gets. */
    shown: async (host: string) => String((await servedCertificate(double.port(TLS), host)).subject.CN),
    /** Waits for what takes real time, while the clock stands still. */
    until: (holds: () => boolean) => eventually(holds, PATIENCE),
  };
}
