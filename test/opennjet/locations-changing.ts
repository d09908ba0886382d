/** The carrier locations over a double, driven by Kubernetes objects as they change; and the calls that it made. */
import { RoutingModel } from "../../controller/model/routing-model.js";
import { BackendsApi, OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import {
  DEFAULT_OPENNJET_CONFIGURATION,
  LOCATIONS_SERVER_NAME,
  openNjetConfiguration,
} from "../../controller/proxies/opennjet/configuration.js";
import { dataPlane } from "../../controller/proxies/opennjet/data-plane.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import { isMarker } from "../../controller/proxies/opennjet/locations/marker.js";
import { withoutLocation } from "../../controller/proxies/opennjet/locations/questions.js";
import type { ApplyFailure } from "../../controller/proxies/proxy.js";
import { Planner } from "../../controller/reconcile/plan-changes.js";
import { changeOf, parseYaml, removalOf } from "../model/model-support.js";
import { DOUBLE_TOKEN, OpenNjetDouble } from "../real/opennjet-double/index.js";
import { patternChecker } from "../support/core.js";
import { cleanup, closing } from "../support/harness.js";
import { carrierOver, QUESTIONS } from "./carrier-over.js";
import { CONFIGURED_MODULES, doubleMap, QUESTION_MAP } from "./configured-double.js";

const ADDRESS = "0.0.0.0:80";
/** What the double has as `$njet_kic_…`: variables that the static configuration gives. */
const VARIABLES = { $njet_kic_dollar: "$", $njet_kic_connection: "", $njet_kic_request_id: "$request_id" };

export interface Changing extends Omit<Driven, "model"> {
  double: OpenNjetDouble;
  carrier: LocationsCarrier;
  http: number;
  /** The calls of both APIs since the last look, in their order: `add (…)`, `remove (…)`, `marker`, and `post` with a number of backends. */
  calls(): string[];
}

/** A carrier that holds nothing yet but its marker, and one worker. */
export async function changing(maxLocations?: number): Promise<Changing> {
  const variables = Object.entries(VARIABLES).map(([keyTo, value]) =>
    doubleMap(keyTo, "$remote_addr", { default: value }),
  );
  const maps = [...variables, QUESTION_MAP];
  const body = ["location / { return 404; }", ...withoutLocation(QUESTIONS)].join("\n");
  const server = { listens: [ADDRESS], names: [LOCATIONS_SERVER_NAME], body };
  const configuration = { servers: [server], maps, mapBucket: configuredMapBucket() };
  const double = closing(await OpenNjetDouble.start({ configuration, workers: 1, modules: CONFIGURED_MODULES }));
  const api = closing(new OpenNjetApi({ origin: double.origin }));
  const backends = new BackendsApi({ origin: double.backendsOrigin, token: DOUBLE_TOKEN });
  const http = double.port(ADDRESS);
  /** Each post, and after how many requests of the control API it came. */
  const posted: [number, string][] = [];
  const carrier = await carrierOver({
    api: api.locations,
    server: { addressPort: ADDRESS, serverName: LOCATIONS_SERVER_NAME },
    backends: {
      list: () => backends.list(),
      post(list) {
        posted.push([double.requests.length, `post ${list.length}`]);
        return backends.post(list);
      },
    },
    plane: dataPlane(() => ({ port: http }), 1, false),
    maxLocations,
    release: () => backends.close(),
  });
  cleanup(() => carrier.close(0));

  const { set, remove } = await drivenByObjects(carrier);
  posted.length = 0;
  let requests = double.requests.length;
  return {
    double,
    carrier,
    http,
    set,
    remove,
    calls() {
      const made: string[] = [];
      for (const { method, path, body } of double.requests.slice(requests)) {
        while (posted.length > 0 && posted[0][0] <= requests) made.push((posted.shift() as [number, string])[1]);
        made.push(callText(method, path, body));
        requests++;
      }
      made.push(...posted.splice(0).map(([, text]) => text));
      return made;
    },
  };
}

/** What njet.conf has; undefined where it leaves that to OpenNJet. */
function configuredMapBucket(): number | undefined {
  const { data } = openNjetConfiguration({ ...DEFAULT_OPENNJET_CONFIGURATION, carrier: "locations" });
  const [, bytes] = /map_hash_bucket_size (\d+);/.exec(data) ?? [];
  return bytes === undefined ? undefined : Number(bytes);
}

/** What drives a carrier by objects, and the model that it does so by. */
export interface Driven {
  model: RoutingModel;
  /** Sets the objects of a YAML text; gives what was refused. */
  set(yaml: string): Promise<ApplyFailure[]>;
  remove(yaml: string): Promise<ApplyFailure[]>;
}

/** A model without objects over a carrier that has begun, which is told so. */
export async function drivenByObjects(carrier: LocationsCarrier): Promise<Driven> {
  const model = new RoutingModel({ checker: patternChecker(), source: "folder" });
  const planner = new Planner();
  const apply = async (changes: Parameters<RoutingModel["update"]>[0]) =>
    (await carrier.apply(planner.planChanges(model.update(changes)))).failures;
  await carrier.apply(planner.planFull(model.snapshot()));
  await carrier.complete();
  return {
    model,
    set: (yaml) => apply(parseYaml(yaml).map(changeOf)),
    remove: (yaml) => apply(parseYaml(yaml).map(removalOf)),
  };
}

function callText(method: string, path: string, body: unknown): string {
  const { locations, location_name } = body as { locations?: { location_name: string }[]; location_name?: string };
  const verb = { POST: "add", PUT: "remove" }[method];
  if (verb === undefined || !path.endsWith("/dyn_loc")) return `${method} ${path}`;
  const name = locations?.[0].location_name ?? location_name ?? "";
  return isMarker({ name }) ? `${verb} marker` : `${verb} ${name}`;
}
