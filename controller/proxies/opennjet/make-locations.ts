import { join } from "node:path";
import type { Logger } from "../../observability/logger.js";
import { AccessLogPipe } from "../nginx/access-log.js";
import { addressPort } from "../nginx/configured-values.js";
import { FolderClaim } from "../nginx/folder-claim.js";
import type { ListenerPorts } from "../nginx/listener-ports.js";
import type { NginxRunner } from "../nginx/nginx-proxy.js";
import type { NginxFolder } from "../nginx/run-folder.js";
import { BackendsApi, type OpenNjetApi } from "./api/index.js";
import { BundledBackends } from "./bundled-backends.js";
import { bundledWorkers } from "./bundled-workers.js";
import { LOCATIONS_SERVER_NAME } from "./configuration.js";
import { dataPlane } from "./data-plane.js";
import { isNameHolder } from "./locations/backend-names.js";
import { HeldLocations } from "./locations/held-locations.js";
import { FileLedger, isLedgerEntry, type Ledger, MemoryLedger } from "./locations/ledger.js";
import { LocationsCarrier } from "./locations/locations-carrier.js";
import type { BalancerName } from "./parts.js";

/** Beside the configuration: what OpenNJet was told, for the next controller. */
const LOCATIONS = "locations.json";
const NAMES = "backend-names.json";

export interface LocationsChoices {
  folder: NginxFolder;
  api: OpenNjetApi;
  /** The listeners, as they are now. */
  ports: Pick<ListenerPorts, "http" | "https">;
  /** As many as OpenNJet was told to start. */
  workers: number;
  proxyProtocol: boolean;
  accessLog: boolean;
  /** See questionFolder. */
  questions: string;
  maxLocations: number;
  balancer: BalancerName;
  logger: Logger;
  makeRunner(onRestart: () => void): NginxRunner;
}

/** The carrier locations over an OpenNJet that is started by its runner. */
export function locationsCarrier(choices: LocationsChoices): LocationsCarrier {
  const { folder, api, ports, workers, logger } = choices;
  const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
  const backendsApi = new BackendsApi({ origin: "http://balancer", socketPath: folder.socket, token: folder.token });
  const backends =
    choices.balancer === "bundled"
      ? new BundledBackends({
          api: backendsApi,
          workers: bundledWorkers(folder.socket, workers),
          now: () => performance.now(),
          wait,
        })
      : backendsApi;
  function ledger<T>(file: string, isEntry: (value: unknown) => value is T): Ledger<T> {
    return folder.stays ? new FileLedger(join(folder.path, file), isEntry) : new MemoryLedger<T>();
  }
  let claim: FolderClaim | undefined;
  let accessLog: AccessLogPipe | undefined;
  return new LocationsCarrier({
    async prepare() {
      claim = await FolderClaim.take(folder.claim);
      if (choices.accessLog) accessLog = await AccessLogPipe.open(folder.accessLog);
    },
    openLocations: () =>
      HeldLocations.open({
        api: api.locations,
        server: { addressPort: addressPort(ports.http), serverName: LOCATIONS_SERVER_NAME },
        ledger: ledger(LOCATIONS, isLedgerEntry),
        now: Date.now,
        wait,
      }),
    backends,
    balancer: choices.balancer,
    folder: choices.questions,
    names: ledger(NAMES, isNameHolder),
    plane: dataPlane(() => ports.http, workers, choices.proxyProtocol),
    makeRunner: choices.makeRunner,
    ports,
    maxLocations: choices.maxLocations,
    logger,
    wait,
    async release() {
      await backends.close();
      await claim?.release();
      await accessLog?.close();
      folder.remove();
    },
  });
}
