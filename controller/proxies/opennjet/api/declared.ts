/**
 * The declarative modules of `/v1/config` besides maps: each has one document, and a change sends the parts of it that are
 * to be different.
 */
import type { ControlServer } from "./control-server.js";
import { PATHS } from "./paths.js";
import { boolean, list, number, object, optional, type Reader, record, text } from "./shape.js";

/** A server of the data plane as these documents name it, and what is said of its locations. */
export interface ConfiguredServer<L> {
  listens: string[];
  serverNames: string[];
  locations?: L[];
}

/** What becomes of the access log in a location. `location` is its rule and name, as added. */
export interface LocationAccessLog {
  location: string;
  accessLogOn?: boolean;
  accessLogs?: { path: string; formatName: string }[];
  locations?: LocationAccessLog[];
}

export interface AccessLogFormat {
  name: string;
  /** With variables of NGINX. */
  format: string;
  escape?: string;
}

export interface AccessLogConfiguration {
  servers?: ConfiguredServer<LocationAccessLog>[];
  accessLogFormats?: AccessLogFormat[];
}

/** Whether the requests of a location are counted. */
export interface LocationVts {
  location: string;
  vhost_traffic_status?: boolean;
  locations?: LocationVts[];
}

export interface VtsConfiguration {
  servers?: ConfiguredServer<LocationVts>[];
  vhost_traffic_status_filter_by_set_key?: string;
}

/** Limits of a location, in the words of NGINX's directives. */
export interface LocationLimits {
  location: string;
  limit_rate?: string;
  limit_rate_after?: string;
  limit_conns_scope?: string;
  limit_conns?: { zone: string; conn: number }[];
  limit_conn_status?: number;
  limit_reqs_scope?: string;
  limit_reqs?: { zone: string; burst?: number; delay?: string }[];
  limit_req_status?: number;
  locations?: LocationLimits[];
}

export interface LimitsConfiguration {
  servers?: ConfiguredServer<LocationLimits>[];
  limit_rps?: { zone: string; rate: string }[];
}

/** A document of one module. */
export class Declared<T> {
  constructor(
    private readonly control: ControlServer,
    private readonly path: string,
    private readonly reader: Reader<T>,
  ) {}

  /** What is in force. Throws ModuleNotLoadedError if the data plane does not have the module. */
  get(): Promise<T> {
    return this.control.read({ method: "GET", path: this.path }, this.reader);
  }

  /** Changes what `parts` names; PartlyAppliedError says that some of it came into force. */
  change(parts: T): Promise<void> {
    return this.control.change({ method: "PUT", path: this.path, body: parts });
  }
}

export function accessLog(control: ControlServer): Declared<AccessLogConfiguration> {
  const location: Reader<LocationAccessLog> = object<LocationAccessLog>({
    location: text,
    accessLogOn: optional(boolean),
    accessLogs: optional(list(object<{ path: string; formatName: string }>({ path: text, formatName: text }))),
    locations: optional(list((value, where) => location(value, where))),
  });
  const formats = list(object<AccessLogFormat>({ name: text, format: text, escape: optional(text) }));
  return new Declared(
    control,
    PATHS.accessLog,
    object<AccessLogConfiguration>({
      servers: optional(list(serverOf(location))),
      accessLogFormats: optional(formats),
    }),
  );
}

export function vts(control: ControlServer): Declared<VtsConfiguration> {
  const location: Reader<LocationVts> = object<LocationVts>({
    location: text,
    vhost_traffic_status: optional(boolean),
    locations: optional(list((value, where) => location(value, where))),
  });
  return new Declared(
    control,
    PATHS.vts,
    object<VtsConfiguration>({
      servers: optional(list(serverOf(location))),
      vhost_traffic_status_filter_by_set_key: optional(text),
    }),
  );
}

export function limits(control: ControlServer): Declared<LimitsConfiguration> {
  const location: Reader<LocationLimits> = object<LocationLimits>({
    location: text,
    limit_rate: optional(text),
    limit_rate_after: optional(text),
    limit_conns_scope: optional(text),
    limit_conns: optional(list(object<{ zone: string; conn: number }>({ zone: text, conn: number }))),
    limit_conn_status: optional(number),
    limit_reqs_scope: optional(text),
    limit_reqs: optional(
      list(
        object<{ zone: string; burst?: number; delay?: string }>({
          zone: text,
          burst: optional(number),
          delay: optional(text),
        }),
      ),
    ),
    limit_req_status: optional(number),
    locations: optional(list((value, where) => location(value, where))),
  });
  const rates = list(object<{ zone: string; rate: string }>({ zone: text, rate: text }));
  return new Declared(
    control,
    PATHS.limits,
    object<LimitsConfiguration>({ servers: optional(list(serverOf(location))), limit_rps: optional(rates) }),
  );
}

function serverOf<L>(location: Reader<L>): Reader<ConfiguredServer<L>> {
  return object<ConfiguredServer<L>>({
    listens: list(text),
    serverNames: list(text),
    locations: optional(list(location)),
  });
}

/** `/v1/config/http_split_clients_2`: the shares of the one `split_clients_2` of the configuration. */
export class Split {
  private readonly declared: Declared<{ http: { split_clients_2: Record<string, number> } }>;

  constructor(control: ControlServer) {
    const reader = object({ http: object({ split_clients_2: record(number) }) });
    this.declared = new Declared(control, PATHS.splits, reader);
  }

  /** Percent by value. */
  async get(): Promise<Record<string, number>> {
    return (await this.declared.get()).http.split_clients_2;
  }

  /** Whole numbers that make 100 together. Throws RefusedError (500) if they don't. */
  set(shares: Readonly<Record<string, number>>): Promise<void> {
    return this.declared.change({ http: { split_clients_2: shares } });
  }
}
