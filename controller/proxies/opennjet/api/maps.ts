import type { ControlServer } from "./control-server.js";
import { PATHS } from "./paths.js";
import { boolean, list, object, optional, text } from "./shape.js";

/** A `map` of the data plane. */
export interface DynamicMap {
  /** `$ssl_server_name`. */
  keyFrom: string;
  /** `$certificate`. */
  keyTo: string;
  values: MapValue[];
  isVolatile?: boolean;
  /** Whether keys like `*.example.com` are patterns. */
  hostnames?: boolean;
}

export interface MapValue {
  /** A value of `keyFrom`, a pattern after `~`, or `default`. */
  valueFrom: string;
  valueTo: string;
}

const MAPS = object<{ maps: DynamicMap[] }>({
  maps: list(
    object<DynamicMap>({
      keyFrom: text,
      keyTo: text,
      values: list(object<MapValue>({ valueFrom: text, valueTo: text })),
      isVolatile: optional(boolean),
      hostnames: optional(boolean),
    }),
  ),
});

/**
 * `/v1/config/http_dyn_map`. A map that is sent replaces the one with its `keyFrom` and `keyTo` as a whole. Nothing is
 * checked: a value that names a missing file is taken. From about 1,000 entries on the answer is a RpcTimeoutError, and the
 * map comes into force some seconds later. A body of more than 1 MB is a BodyTooLargeError, unless the control server has
 * another `client_max_body_size`.
 */
export class Maps {
  constructor(private readonly control: ControlServer) {}

  /** The maps that are in force. */
  async list(): Promise<DynamicMap[]> {
    return (await this.control.read({ method: "GET", path: PATHS.maps }, MAPS)).maps;
  }

  /** Replaces maps that exist. Those that are not named stay as they are. */
  replace(maps: readonly DynamicMap[]): Promise<void> {
    return this.put(maps.map(fields));
  }

  /**
   * Adds maps. Better declare them in the configuration: a dynamic location that uses the variable of a map that was added
   * breaks every dynamic object after a reload.
   */
  add(maps: readonly DynamicMap[]): Promise<void> {
    // Without either flag OpenNJet takes an addition for an update, and fails.
    return this.put(maps.map((map) => ({ type: "add", isVolatile: false, hostnames: false, ...fields(map) })));
  }

  /** Removes maps that were added. */
  remove(maps: readonly Pick<DynamicMap, "keyFrom" | "keyTo">[]): Promise<void> {
    return this.put(maps.map(({ keyFrom, keyTo }) => ({ type: "del", keyFrom, keyTo, values: [] })));
  }

  private put(maps: readonly object[]): Promise<void> {
    return this.control.change({ method: "PUT", path: PATHS.maps, body: { maps } });
  }
}

function fields({ keyFrom, keyTo, values, isVolatile, hostnames }: DynamicMap): DynamicMap {
  return {
    keyFrom,
    keyTo,
    values: values.map(({ valueFrom, valueTo }) => ({ valueFrom, valueTo })),
    ...(isVolatile !== undefined && { isVolatile }),
    ...(hostnames !== undefined && { hostnames }),
  };
}
