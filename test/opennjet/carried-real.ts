/** The carrier locations over a real OpenNJet that a test has started. */
import { join } from "node:path";
import { silentLogger } from "../../controller/observability/logger.js";
import { BackendsApi, OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import { HeldLocations } from "../../controller/proxies/opennjet/locations/held-locations.js";
import { MemoryLedger } from "../../controller/proxies/opennjet/locations/ledger.js";
import { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import type { RequestNginx } from "../nginx/request-nginx.js";
import { cleanup, closing } from "../support/harness.js";

const MOST_LOCATIONS = 300;

export async function carriedOver(njet: RequestNginx): Promise<{ carrier: LocationsCarrier; api: OpenNjetApi }> {
  const api = closing(new OpenNjetApi({ origin: "http://opennjet", socketPath: join(njet.folder, "api.sock") }));
  const backends = new BackendsApi({ origin: "http://balancer", socketPath: njet.controlSocket, token: njet.token });
  const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
  const server = { addressPort: `127.0.0.1:${njet.http}`, serverName: LOCATIONS_SERVER_NAME };
  const carrier = new LocationsCarrier({
    prepare: async () => undefined,
    openLocations: () =>
      HeldLocations.open({ api: api.locations, server, ledger: new MemoryLedger(), now: Date.now, wait }),
    backends,
    names: new MemoryLedger(),
    plane: dataPlane({ address: "127.0.0.1", port: njet.http }, 1, false),
    makeRunner: () => ({ start: async () => undefined, stop: async () => undefined, restarts: 0 }),
    ports: undefined,
    maxLocations: MOST_LOCATIONS,
    logger: silentLogger,
    wait,
    release: () => backends.close(),
  });
  await carrier.listen();
  cleanup(() => carrier.close(0));
  return { carrier, api };
}
