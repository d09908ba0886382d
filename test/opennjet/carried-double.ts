/** The carrier locations over a double of OpenNJet, which has what the static configuration of the carrier has. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BackendsApi, OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import type { NameHolder } from "../../controller/proxies/opennjet/locations/backend-names.js";
import { LOCATIONS_SERVER_DIRECTIVES } from "../../controller/proxies/opennjet/locations/directives.js";
import type { LocationsApi } from "../../controller/proxies/opennjet/locations/held-locations.js";
import type { Ledger, LedgerEntry } from "../../controller/proxies/opennjet/locations/ledger.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import { withoutLocation } from "../../controller/proxies/opennjet/locations/questions.js";
import { makeFolder } from "../cli/cli-support.js";
import { DOUBLE_TOKEN, type DoubleOptions, OpenNjetDouble } from "../real/opennjet-double/index.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanup, closing } from "../support/harness.js";
import { carrierOver, QUESTIONS } from "./carrier-over.js";
import { CONFIGURED_MODULES, doubleMap, QUESTION_MAP } from "./configured-double.js";

const PLAIN = "0.0.0.0:80";
const TLS = "0.0.0.0:443";
const WORKERS = 2;

export interface CarriedDouble {
  double: OpenNjetDouble;
  carrier: LocationsCarrier;
  api: OpenNjetApi;
  http: number;
  https: number;
  /** OpenNJet was started anew. */
  restarted(): void;
}

export interface CarriedDoubleOptions extends Partial<DoubleOptions> {
  maxLocations?: number;
  ledger?: Ledger<LedgerEntry>;
  names?: Ledger<NameHolder>;
  /** An OpenNJet that is there already. */
  over?: OpenNjetDouble;
  /** Called before each call of the location API. */
  between?: () => Promise<void>;
}

export async function startDouble(options: Partial<DoubleOptions> = {}): Promise<OpenNjetDouble> {
  const folder = makeFolder();
  const { chain, key } = makeCertificate("default", "default.example.com");
  const tls = { certificate: join(folder, "chain.pem"), key: join(folder, "key.pem"), listens: [TLS] };
  writeFileSync(tls.certificate, chain);
  writeFileSync(tls.key, key, { mode: 0o600 });
  const body = [...LOCATIONS_SERVER_DIRECTIVES, "location / { return 404; }", ...withoutLocation(QUESTIONS)].join("\n");
  const configuration = {
    servers: [{ listens: [PLAIN, TLS], names: [LOCATIONS_SERVER_NAME], tls, body }],
    maps: [
      doubleMap("$njet_kic_dollar", "$remote_addr", { default: "$" }),
      doubleMap("$njet_kic_request_id", "$http_x_request_id", { default: "$request_id" }),
      doubleMap("$njet_kic_connection", "$http_upgrade", { default: "upgrade", "": "" }),
      QUESTION_MAP,
    ],
  };
  return closing(
    await OpenNjetDouble.start({
      configuration,
      workers: WORKERS,
      modules: CONFIGURED_MODULES,
      random: () => 0,
      ...options,
    }),
  );
}

/** A carrier that has begun and holds nothing. */
export async function carriedDouble(options: CarriedDoubleOptions = {}): Promise<CarriedDouble> {
  const { maxLocations, ledger, names, over, between, ...rest } = options;
  const double = over ?? (await startDouble(rest));
  const api = closing(new OpenNjetApi({ origin: double.origin }));
  const backends = new BackendsApi({ origin: double.backendsOrigin, token: DOUBLE_TOKEN });
  const http = double.port(PLAIN);
  let restarted: () => void = () => {};
  const carrier = await carrierOver({
    api: between === undefined ? api.locations : observed(api.locations, between),
    server: { addressPort: PLAIN, serverName: LOCATIONS_SERVER_NAME },
    backends,
    plane: dataPlane(() => ({ port: http }), WORKERS, false),
    ledger,
    names,
    maxLocations,
    onRunner: (call) => {
      restarted = call;
    },
    release: () => backends.close(),
  });
  cleanup(() => carrier.close(0));
  return { double, carrier, api, http, https: double.port(TLS), restarted: () => restarted() };
}

function observed(api: LocationsApi, between: () => Promise<void>): LocationsApi {
  return {
    async add(server, location) {
      await between();
      await api.add(server, location);
    },
    async remove(server, location) {
      await between();
      await api.remove(server, location);
    },
  };
}
