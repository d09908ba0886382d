/** The carrier locations over a real OpenNJet that a test has started. */
import { join } from "node:path";
import { BackendsApi, OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { BundledBackends } from "../../controller/proxies/opennjet/bundled-backends.js";
import { bundledWorkers } from "../../controller/proxies/opennjet/bundled-workers.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import type { BalancerName } from "../../controller/proxies/opennjet/parts.js";
import type { RequestNginx } from "../nginx/request-nginx.js";
import { cleanup, closing } from "../support/harness.js";
import { carrierOver } from "./carrier-over.js";

export interface CarriedReal {
  carrier: LocationsCarrier;
  api: OpenNjetApi;
}

export async function carriedOver(
  njet: RequestNginx,
  balancer: BalancerName = "own",
  workers = 1,
): Promise<CarriedReal> {
  const api = closing(new OpenNjetApi({ origin: "http://opennjet", socketPath: join(njet.folder, "api.sock") }));
  const posted = new BackendsApi({ origin: "http://balancer", socketPath: njet.controlSocket, token: njet.token });
  const backends = balancer === "own" ? posted : bundledBackends(posted, njet, workers);
  const carrier = await carrierOver({
    api: api.locations,
    server: { addressPort: `127.0.0.1:${njet.http}`, serverName: LOCATIONS_SERVER_NAME },
    backends,
    balancer,
    plane: dataPlane({ address: "127.0.0.1", port: njet.http }, workers, false),
    release: () => backends.close(),
  });
  cleanup(() => carrier.close(0));
  return { carrier, api };
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
