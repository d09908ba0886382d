import type { ControlServer } from "./control-server.js";
import { PATHS } from "./paths.js";

/** Names a server of the data plane. */
export interface ServerAddress {
  /** As its `listen` has it: `127.0.0.1:80`, `0.0.0.0:80`. */
  addressPort: string;
  /** One of its names. */
  serverName: string;
}

/** A location. Each field is pasted into configuration text and parsed: the caller escapes or refuses what is foreign. */
export interface DynamicLocation {
  rule: "" | "=" | "^~" | "~" | "~*";
  /** A path, a pattern, or a condition in parentheses. */
  name: string;
  /** Directives, each with its semicolon. */
  body: string;
  proxyPass?: string;
  locations?: DynamicLocation[];
}

/**
 * `/v1/dyn_loc`. There is no list and no update. A location is named by its rule and name, word by word as they were added;
 * the static ones of the configuration can be removed as well.
 */
export class Locations {
  constructor(private readonly control: ControlServer) {}

  /** Adds one location. Throws AlreadyExistsError if there is one of this rule and name, RefusedError if it does not parse. */
  async add(server: ServerAddress, location: DynamicLocation): Promise<void> {
    const body = { type: "add", ...addressFields(server), locations: [locationFields(location)] };
    const exists = `error:location[${location.rule}${location.name}] exist!`;
    await this.control.change({ method: "POST", path: PATHS.location, body }, { exists });
  }

  /** Removes one. Throws NotFoundError if there is none. */
  async remove(server: ServerAddress, location: Pick<DynamicLocation, "rule" | "name">): Promise<void> {
    const { rule, name } = location;
    const body = { type: "del", ...addressFields(server), location_rule: rule, location_name: name };
    const missing = `not find  location [${rule}${name}]!`;
    await this.control.change({ method: "PUT", path: PATHS.location, body }, { missing });
  }
}

export function addressFields({ addressPort, serverName }: ServerAddress): Record<string, string> {
  return { addr_port: addressPort, server_name: serverName };
}

function locationFields({ rule, name, body, proxyPass, locations }: DynamicLocation): Record<string, unknown> {
  return {
    location_rule: rule,
    location_name: name,
    ...(body !== "" && { location_body: body }),
    ...(proxyPass !== undefined && { proxy_pass: proxyPass }),
    ...(locations !== undefined && { locations: locations.map(locationFields) }),
  };
}
