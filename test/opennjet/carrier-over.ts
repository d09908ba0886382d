/** The carrier locations as tests have it: over whatever stands for OpenNJet, which is there already. */
import { silentLogger } from "../../controller/observability/logger.js";
import type { ServerAddress } from "../../controller/proxies/opennjet/api/index.js";
import type { NameHolder } from "../../controller/proxies/opennjet/locations/backend-names.js";
import { HeldLocations, type LocationsApi } from "../../controller/proxies/opennjet/locations/held-locations.js";
import { type Ledger, type LedgerEntry, MemoryLedger } from "../../controller/proxies/opennjet/locations/ledger.js";
import {
  DEFAULT_MAX_LOCATIONS,
  LocationsCarrier,
  type LocationsCarrierParts,
} from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import { questionFolder } from "../../controller/proxies/opennjet/locations/questions.js";

/** Folder of the questions of all carriers of tests. */
export const QUESTIONS = questionFolder("of tests");

export interface CarrierOverParts extends Pick<LocationsCarrierParts, "backends" | "balancer" | "plane"> {
  api: LocationsApi;
  server: ServerAddress;
  /** What was told to OpenNJet, and the names that were given; empty where absent. */
  ledger?: Ledger<LedgerEntry>;
  names?: Ledger<NameHolder>;
  maxLocations?: number;
  /** Milliseconds; the system's clock where absent. */
  now?: () => number;
  /** Is given what a restart of OpenNJet has to call. */
  onRunner?: (restarted: () => void) => void;
  release?: () => Promise<void>;
}

/** A carrier that has begun and was told of nothing. Whoever asks for it closes it. */
export async function carrierOver(parts: CarrierOverParts): Promise<LocationsCarrier> {
  const {
    api,
    server,
    backends,
    balancer,
    plane,
    maxLocations = DEFAULT_MAX_LOCATIONS,
    now = Date.now,
    onRunner,
  } = parts;
  const { ledger = new MemoryLedger(), names = new MemoryLedger(), release = async () => undefined } = parts;
  const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
  const carrier = new LocationsCarrier({
    prepare: async () => undefined,
    openLocations: () => HeldLocations.open({ api, server, ledger, now, wait }),
    backends,
    balancer,
    folder: QUESTIONS,
    names,
    plane,
    makeRunner: (restarted) => {
      onRunner?.(restarted);
      return { start: async () => undefined, stop: async () => undefined, restarts: 0 };
    },
    ports: undefined,
    maxLocations,
    logger: silentLogger,
    wait,
    release,
  });
  await carrier.listen();
  return carrier;
}
