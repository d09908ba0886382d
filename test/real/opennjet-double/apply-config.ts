import { CONF_ERROR, DONE, type MapEntry, type Result, refused } from "./messages.js";
import { fullName, type PlaneMap, type PlaneServer, type PlaneState, planeMap } from "./plane-state.js";

/** The declarative modules. A document names the parts that are to be different. */
export function applyConfig(state: PlaneState, module: string, document: Record<string, unknown>): Result {
  switch (module) {
    case "http_dyn_map":
      return applyMaps(state, document);
    case "http_split_clients_2":
      return applySplit(state, document);
    case "http_log":
      return eachLocation(state, document, (location, { accessLogOn }) => {
        if (typeof accessLogOn === "boolean") location.accessLog = accessLogOn;
      });
    case "http_vts":
      return eachLocation(state, document, (location, { vhost_traffic_status: counted }) => {
        if (typeof counted === "boolean") location.counted = counted;
      });
    default:
      return DONE;
  }
}

/** What `GET` shows; undefined where the module has nothing to show here. */
export function configOf(state: PlaneState, module: string): unknown {
  const servers = (field: (location: PlaneServer["locations"][number]) => object) =>
    state.servers.map(({ listens, names, locations }) => ({
      listens,
      serverNames: names,
      locations: locations.map((one) => ({ location: one.rule ? `${one.rule} ${one.name}` : one.name, ...field(one) })),
    }));
  switch (module) {
    case "http_dyn_map":
      return { maps: state.maps.map(({ isStatic: _, ...map }) => map) };
    case "http_split_clients_2":
      return { http: { split_clients_2: state.split?.shares ?? {} } };
    case "http_log":
      return { servers: servers(({ accessLog }) => ({ accessLogOn: accessLog })), accessLogFormats: [] };
    case "http_vts":
      return { servers: servers(({ counted }) => ({ vhost_traffic_status: counted })) };
    case "http_dyn_limit":
      return { servers: servers(() => ({})), limit_rps: [] };
    default:
      return undefined;
  }
}

/** `njt_http_dyn_map_module.c`: with one map the whole fails, with several the rest is applied. */
function applyMaps(state: PlaneState, { maps }: Record<string, unknown>): Result {
  if (!Array.isArray(maps)) return refused(3, "httpmap.maps is missing");
  const entries = maps as MapEntry[];
  const missing = entries.find(
    (one) => ![one.keyFrom, one.keyTo].every((key) => typeof key === "string" && key.length > 1),
  );
  if (missing || entries.some(({ values }) => !Array.isArray(values)))
    return refused(3, "httpmap.maps has a wrong item");
  const data: string[] = [];
  for (const entry of entries) {
    const why = applyMap(state, entry);
    if (why !== undefined) data.push(why);
  }
  if (data.length === 0) return DONE;
  return entries.length > 1 ? refused(1, "partial success.", data) : refused(4, CONF_ERROR, data);
}

function applyMap(state: PlaneState, entry: MapEntry): string | undefined {
  const { keyFrom, keyTo, type = "" } = entry;
  if (!keyTo.startsWith("$")) return `keyTo ${keyTo} is invalid, it should start with $`;
  if (!keyFrom.startsWith("$")) return `keyFrom ${keyFrom} is invalid, it should start with $`;
  const variable = keyTo.slice(1);
  const named = state.maps.find((map) => map.keyTo === keyTo);
  const same = named?.keyFrom === keyFrom ? named : undefined;
  if (!["", "add", "del"].includes(type)) return `unknow type:${type}`;
  if (type === "del") return removeMap(state, named, same, keyFrom, variable);
  if (same) {
    // Its own words for a hash that can't be built.
    if (!fits(entry, state.mapBucket)) return ` not find map,keyFrom:${keyFrom}!`;
    replaceValues(same, entry);
    return undefined;
  }
  if (type === "") return named ? ` not find map,keyFrom:${keyFrom}!` : ` not find map,keyTo:${variable}!`;
  if (named) return ` keyTo ${variable} is exsit!`;
  // A missing flag is read as if the addition had none of its fields.
  if (entry.isVolatile === undefined && entry.hostnames === undefined) {
    return ` not find map,keyFrom:${keyFrom},keyTo:${variable} !`;
  }
  state.maps.push(planeMap(entry, false));
  return undefined;
}

/** `njt_hash_init`: an element is a pointer, a length and the name, aligned to pointers; another pointer ends the bucket. */
function fits({ values }: MapEntry, bucket: number): boolean {
  const names = values.map(({ valueFrom }) => valueFrom).filter((name) => name !== "default" && !name.startsWith("~"));
  return names.every((name) => 8 + Math.ceil((Buffer.byteLength(name) + 2) / 8) * 8 + 8 <= bucket);
}

function removeMap(
  state: PlaneState,
  named: PlaneMap | undefined,
  same: PlaneMap | undefined,
  keyFrom: string,
  variable: string,
): string | undefined {
  if (!same) return named ? ` not find map,keyFrom:${keyFrom}!` : ` not find map,keyTo:${variable}!`;
  if (same.isStatic) return "can`t del static variable";
  state.maps.splice(state.maps.indexOf(same), 1);
  return undefined;
}

function replaceValues(map: PlaneMap, entry: MapEntry): void {
  Object.assign(map, planeMap(entry, map.isStatic));
}

function applySplit(state: PlaneState, { http }: Record<string, unknown>): Result {
  if (typeof http !== "object" || http === null) return refused(3, "http field is required");
  const { split_clients_2: shares } = http as { split_clients_2?: Record<string, unknown> };
  if (typeof shares !== "object") return refused(3, "split_clients_2 field is required");
  const values = Object.values(shares);
  if (!values.every((one) => Number.isInteger(one) && Number(one) >= 0 && Number(one) <= 100)) {
    return refused(3, "percentage should be an integer from 0 to 100");
  }
  if (values.reduce<number>((sum, one) => sum + Number(one), 0) !== 100) {
    return refused(500, "total percentage should be 100");
  }
  if (state.split) state.split.shares = shares as Record<string, number>;
  return DONE;
}

interface ConfiguredLocation {
  location?: string;
  accessLogOn?: boolean;
  vhost_traffic_status?: boolean;
}

function eachLocation(
  state: PlaneState,
  { servers = [] }: Record<string, unknown>,
  change: (location: PlaneServer["locations"][number], entry: ConfiguredLocation) => void,
): Result {
  const data: string[] = [];
  let changed = 0;
  for (const one of servers as { listens: string[]; serverNames: string[]; locations?: ConfiguredLocation[] }[]) {
    const server = state.serverOf(one.listens[0], one.serverNames[0]);
    const place = `servers[${one.listens[0]},${one.serverNames[0]}]`;
    if (!server) data.push(`${place}can not find server.`);
    for (const entry of server ? (one.locations ?? []) : []) {
      const wanted = fullName("", entry.location ?? "");
      const location = server?.locations.find(({ rule, name }) => fullName(rule, name) === wanted);
      if (!location) data.push(`${place}.locations[${entry.location}] location not found`);
      else {
        change(location, entry);
        changed++;
      }
    }
  }
  if (data.length === 0) return DONE;
  return changed > 0 ? refused(1, "partial success.", data) : refused(4, CONF_ERROR, data);
}
