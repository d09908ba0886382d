/** The carrier locations over a real OpenNJet that a test has started. */
import { join } from "node:path";
import { BackendsApi, OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import type { RequestNginx } from "../nginx/request-nginx.js";
import { cleanup, closing } from "../support/harness.js";
import { carrierOver } from "./carrier-over.js";

export async function carriedOver(njet: RequestNginx): Promise<{ carrier: LocationsCarrier; api: OpenNjetApi }> {
  const api = closing(new OpenNjetApi({ origin: "http://opennjet", socketPath: join(njet.folder, "api.sock") }));
  const backends = new BackendsApi({ origin: "http://balancer", socketPath: njet.controlSocket, token: njet.token });
  const carrier = await carrierOver({
    api: api.locations,
    server: { addressPort: `127.0.0.1:${njet.http}`, serverName: LOCATIONS_SERVER_NAME },
    backends,
    plane: dataPlane({ address: "127.0.0.1", port: njet.http }, 1, false),
    release: () => backends.close(),
  });
  cleanup(() => carrier.close(0));
  return { carrier, api };
}
