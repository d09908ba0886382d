import { Certificates } from "./certificates.js";
import { ControlServer } from "./control-server.js";
import {
  type AccessLogConfiguration,
  accessLog,
  type Declared,
  type LimitsConfiguration,
  limits,
  Split,
  type VtsConfiguration,
  vts,
} from "./declared.js";
import { HealthChecks } from "./health-checks.js";
import { KeyValue } from "./key-value.js";
import { Locations } from "./locations.js";
import { Maps } from "./maps.js";
import { PATHS } from "./paths.js";
import { Servers } from "./servers.js";
import { list, text } from "./shape.js";
import { Transport } from "./transport.js";
import { Upstreams } from "./upstreams.js";

export interface OpenNjetApiOptions {
  /** The control server: `http://127.0.0.1:8081`. It asks nobody who they are, so it must be on loopback only. */
  origin: string;
  /** Unix socket that the control server listens on, instead of the host of `origin`. */
  socketPath?: string;
  /** Milliseconds for an answer; 10,000 without. OpenNJet itself gives up after 2,000. */
  timeoutMs?: number;
}

/**
 * The APIs with which a running OpenNJet is changed. A promise that resolves means that the privileged agent has taken the
 * change; each worker applies it some milliseconds later, and one that fails only logs it. One that rejects does so with an
 * `OpenNjetApiError`; if that `mayHaveApplied`, the change may be in force or come into force, and must be verified before it
 * is sent again. Nothing is repeated here.
 */
export class OpenNjetApi {
  readonly locations: Locations;
  readonly servers: Servers;
  readonly upstreams: Upstreams;
  readonly maps: Maps;
  readonly certificates: Certificates;
  readonly health: HealthChecks;
  readonly split: Split;
  readonly keyValue: KeyValue;
  readonly accessLog: Declared<AccessLogConfiguration>;
  readonly vts: Declared<VtsConfiguration>;
  readonly limits: Declared<LimitsConfiguration>;
  private readonly transport: Transport;
  private readonly control: ControlServer;

  constructor({ origin, socketPath, timeoutMs }: OpenNjetApiOptions) {
    this.transport = new Transport({ origin, socketPath, timeoutMs });
    const control = new ControlServer(this.transport);
    this.control = control;
    this.locations = new Locations(control);
    this.servers = new Servers(control);
    this.upstreams = new Upstreams(control);
    this.maps = new Maps(control);
    this.certificates = new Certificates(control);
    this.health = new HealthChecks(control);
    this.split = new Split(control);
    this.keyValue = new KeyValue(control);
    this.accessLog = accessLog(control);
    this.vts = vts(control);
    this.limits = limits(control);
  }

  /** Names of the declarative modules that the data plane has loaded: `http_dyn_map`, `http_log`. */
  modules(): Promise<string[]> {
    return this.control.read({ method: "GET", path: PATHS.modules }, list(text));
  }

  /** Waits for the calls under way, then ends the connections. */
  close(): Promise<void> {
    return this.transport.close();
  }
}
