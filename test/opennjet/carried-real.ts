/** The carrier locations over a real OpenNJet that a test has started. */
import { join } from "node:path";
import { BackendsApi, OpenNjetApi, type ServerAddress } from "../../controller/proxies/opennjet/api/index.js";
import { BundledBackends } from "../../controller/proxies/opennjet/bundled-backends.js";
import { bundledWorkers } from "../../controller/proxies/opennjet/bundled-workers.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import type { LocationsApi } from "../../controller/proxies/opennjet/locations/held-locations.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import type { BalancerName } from "../../controller/proxies/opennjet/parts.js";
import type { RequestNginx } from "../nginx/request-nginx.js";
import { cleanup, closing } from "../support/harness.js";
import { type CarrierOverParts, carrierOver } from "./carrier-over.js";

export interface CarriedReal {
  carrier: LocationsCarrier;
  api: OpenNjetApi;
}

export interface CarriedRealOptions extends Pick<CarrierOverParts, "ledger"> {
  /** What calls of the location API go through. */
  through?(api: LocationsApi): LocationsApi;
}

export async function carriedOver(
  njet: RequestNginx,
  balancer: BalancerName = "own",
  workers = 1,
  { through = (api) => api, ledger }: CarriedRealOptions = {},
): Promise<CarriedReal> {
  const api = closing(new OpenNjetApi({ origin: "http://opennjet", socketPath: join(njet.folder, "api.sock") }));
  const posted = new BackendsApi({ origin: "http://balancer", socketPath: njet.controlSocket, token: njet.token });
  const backends = balancer === "own" ? posted : bundledBackends(posted, njet, workers);
  const carrier = await carrierOver({
    api: through(api.locations),
    server: serverOf(njet),
    ledger,
    backends,
    balancer,
    plane: dataPlane(() => ({ address: "127.0.0.1", port: njet.http }), workers, false),
    release: () => backends.close(),
  });
  cleanup(() => carrier.close(0));
  return { carrier, api };
}

export function serverOf(njet: RequestNginx): ServerAddress {
  return { addressPort: `127.0.0.1:${njet.http}`, serverName: LOCATIONS_SERVER_NAME };
}

/** The bundled balancer of an OpenNJet that a test has started. */
export function bundledBackends(api: BackendsApi, njet: RequestNginx, workers = 1): BundledBackends {
  return new BundledBackends({
    api,
    workers: bundledWorkers(njet.controlSocket, workers),
    now: () => performance.now(),
    wait: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
  });
}
