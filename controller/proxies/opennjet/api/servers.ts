import type { ControlServer } from "./control-server.js";
import { addressFields, type ServerAddress } from "./locations.js";
import { PATHS } from "./paths.js";

/** A server (virtual host) to be added. */
export interface DynamicServer extends ServerAddress {
  /** Words after the address in `listen`, such as `ssl`; only for an address that nothing listens on yet. */
  listenOption?: string;
  /** Directives: no `location`, `zone` or second `listen`. Pasted: the caller escapes or refuses what is foreign. Not shown in errors. */
  body: string;
}

/** `/v1/dyn_srv`. A server has one name here; its locations follow through `Locations`. */
export class Servers {
  constructor(private readonly control: ControlServer) {}

  /** Adds one. Throws AlreadyExistsError if the address has a server of this name. */
  async add(server: DynamicServer): Promise<void> {
    const body = {
      type: "add",
      ...addressFields(server),
      ...(server.listenOption !== undefined && { listen_option: server.listenOption }),
      server_body: server.body,
    };
    const exists = `error:[${server.addressPort}] server[${server.serverName}] exist!`;
    await this.control.change({ method: "POST", path: PATHS.server, body, secrets: [server.body] }, { exists });
  }

  /** Removes one. Throws NotFoundError if there is none, NotAllowedError if the configuration has it. */
  async remove(server: ServerAddress): Promise<void> {
    const body = { type: "del", ...addressFields(server) };
    const missing = `error:host[${server.addressPort}],no find server [${server.serverName}]!`;
    await this.control.change({ method: "PUT", path: PATHS.server, body }, { missing });
  }
}
