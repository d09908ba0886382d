/** The carrier locations over a double, driven by Kubernetes objects as they change; and the calls that it made. */
import { RoutingModel } from "../../controller/model/routing-model.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { BackendsApi, OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { LOCATIONS_SERVER_NAME } from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import { HeldLocations } from "../../controller/proxies/opennjet/locations/held-locations.js";
import { MemoryLedger } from "../../controller/proxies/opennjet/locations/ledger.js";
import { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import { isMarker } from "../../controller/proxies/opennjet/locations/marker.js";
import type { ApplyFailure } from "../../controller/proxies/proxy.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { changeOf, parseYaml, removalOf } from "../model/model-support.js";
import { DOUBLE_TOKEN, OpenNjetDouble } from "../real/opennjet-double/index.js";
import { patternChecker } from "../support/core.js";
import { cleanup, closing } from "../support/harness.js";

const ADDRESS = "0.0.0.0:80";
/** What the double has as `$njet_kic_…` and `$pid`: variables that the static configuration or NGINX gives. */
const VARIABLES = { $njet_kic_dollar: "$", $njet_kic_connection: "", $njet_kic_request_id: "$request_id", $pid: "1" };

export interface Changing {
  double: OpenNjetDouble;
  carrier: LocationsCarrier;
  http: number;
  /** Sets the objects of a YAML text; gives what was refused. */
  set(yaml: string): Promise<ApplyFailure[]>;
  remove(yaml: string): Promise<ApplyFailure[]>;
  /**
   * The calls of both APIs since the last look, in order: `add (…)`, `remove (…)`, with `marker` for the condition of a marker,
   * and `post` with the number of backends. Throws where OpenNJet was asked for anything else.
   */
  calls(): string[];
}

/** A carrier that holds nothing yet but its marker, and one worker. */
export async function changing(maxLocations = 300): Promise<Changing> {
  const maps = Object.entries(VARIABLES).map(([keyTo, valueTo]) => {
    return { keyFrom: "$remote_addr", keyTo, values: [{ valueFrom: "default", valueTo }] };
  });
  const server = { listens: [ADDRESS], names: [LOCATIONS_SERVER_NAME], body: "location / { return 404; }" };
  const double = closing(await OpenNjetDouble.start({ configuration: { servers: [server], maps }, workers: 1 }));
  const api = closing(new OpenNjetApi({ origin: double.origin }));
  const backends = new BackendsApi({ origin: double.backendsOrigin, token: DOUBLE_TOKEN });
  const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
  const http = double.port(ADDRESS);
  const sent: string[] = [];
  const named = (verb: string, { name }: { name: string }) => `${verb} ${isMarker({ name }) ? "marker" : name}`;
  const carrier = new LocationsCarrier({
    prepare: async () => undefined,
    openLocations: () =>
      HeldLocations.open({
        api: {
          add(server, location) {
            sent.push(named("add", location));
            return api.locations.add(server, location);
          },
          remove(server, location) {
            sent.push(named("remove", location));
            return api.locations.remove(server, location);
          },
        },
        server: { addressPort: ADDRESS, serverName: LOCATIONS_SERVER_NAME },
        ledger: new MemoryLedger(),
        now: Date.now,
        wait,
      }),
    backends: {
      post(list) {
        sent.push(`post ${list.length}`);
        return backends.post(list);
      },
      list: () => backends.list(),
    },
    names: new MemoryLedger(),
    plane: dataPlane({ port: http }, 1, false),
    makeRunner: () => ({ start: async () => undefined, stop: async () => undefined, restarts: 0 }),
    ports: undefined,
    maxLocations,
    logger: silentLogger,
    wait,
    release: () => backends.close(),
  });
  await carrier.listen();
  cleanup(() => carrier.close(0));

  const model = new RoutingModel({ checker: patternChecker(), source: "folder" });
  const planner = new Planner();
  const apply = async (changes: Parameters<RoutingModel["update"]>[0]) =>
    (await carrier.apply(planner.planChanges(model.update(changes)))).failures;
  await carrier.apply(planner.planFull(model.snapshot()));
  await carrier.complete();

  let seen = sent.length;
  return {
    double,
    carrier,
    http,
    set: (yaml) => apply(parseYaml(yaml).map(changeOf)),
    remove: (yaml) => apply(parseYaml(yaml).map(removalOf)),
    calls() {
      const others = double.requests.filter(({ path }) => !path.endsWith("/dyn_loc"));
      if (others.length > 0) throw new Error(`OpenNJet was asked for ${JSON.stringify(others)}`);
      if (double.requests.length + double.backends.posts.length !== sent.length) throw new Error("calls are missing");
      const made = sent.slice(seen);
      seen = sent.length;
      return made;
    },
  };
}
