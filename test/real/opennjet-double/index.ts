/**
 * An OpenNJet for tests: its control API over real HTTP, the way of a change to agent and workers with its losses, and a data
 * plane that answers real requests by what the workers have. It behaves as `test/opennjet/transcript.txt` has it.
 */
import { type ControlRequest, DoubleControlServer } from "./control-server.js";
import { DataPlane, type ServedRequest } from "./data-plane.js";
import { type Faults, noFaults } from "./faults.js";
import { HealthChecks } from "./health-checks.js";
import { metricsText } from "./metrics.js";
import { Plane } from "./plane.js";
import { type Place, PostedBackends } from "./posted-backends.js";
import { ALL_MODULES, type StaticConfiguration } from "./static-configuration.js";

export type { ControlRequest } from "./control-server.js";
export type { ServedRequest } from "./data-plane.js";
export type { Faults } from "./faults.js";
export type { Place } from "./posted-backends.js";
export type { StaticConfiguration } from "./static-configuration.js";

export interface DoubleOptions {
  configuration: StaticConfiguration;
  /** 2 without. */
  workers?: number;
  /** Declarative modules that are loaded; all without. */
  modules?: readonly string[];
  /** Upstreams whose peers are the posted ones; `upstream_balancer` and those for TLS and gRPC without. */
  balanced?: readonly string[];
  /** Where a peer really is; itself without. */
  connect?: (peer: Place) => Place;
  /** From 0 to below 1, for splits and canaries; `Math.random` without. */
  random?: () => number;
  /** Milliseconds, for the pace of deletes; `performance.now` without. */
  now?: () => number;
  /** `client_max_body_size` of the control server; 1 MB without. */
  mostBody?: number;
  /** In messages. */
  prefix?: string;
}

const BALANCED = ["upstream_balancer", "upstream_tls", "upstream_grpc", "upstream_grpcs"];
const MEGABYTE = 1_048_576;
/** The token of `/configuration/*`. */
export const DOUBLE_TOKEN = "token-of-the-double";

export class OpenNjetDouble {
  /** Set what is to go wrong. */
  readonly faults: Faults = noFaults();
  readonly plane: Plane;
  readonly backends: PostedBackends;
  /** `http://127.0.0.1:PORT` of the control server. */
  origin = "";
  /** That of `/configuration/backends`; its token is DOUBLE_TOKEN. */
  backendsOrigin = "";
  private readonly data: DataPlane;
  private readonly checks: HealthChecks;
  private readonly keyValues = new Map<string, string>();
  private control: DoubleControlServer;
  private readonly past: ControlRequest[] = [];

  private constructor(private readonly options: DoubleOptions) {
    const {
      configuration,
      workers = 2,
      modules = ALL_MODULES,
      prefix = "/double",
      now = () => performance.now(),
    } = options;
    const { balanced = BALANCED, connect = (peer: Place) => peer, random = Math.random } = options;
    const upstreams = {
      ...Object.fromEntries(balanced.map((name) => [name, { servers: [] }])),
      ...configuration.upstreams,
    };
    this.plane = new Plane(
      { configuration: { ...configuration, upstreams }, workers, modules, prefix, now },
      this.faults,
    );
    this.backends = new PostedBackends(random, DOUBLE_TOKEN);
    this.data = new DataPlane({ plane: this.plane, backends: this.backends, balanced, connect, random });
    this.checks = new HealthChecks(
      () => this.plane.members,
      (member) => {
        const { address, port } = this.data.place(member);
        return { host: address, port };
      },
    );
    this.control = this.controlServer();
  }

  static async start(options: DoubleOptions): Promise<OpenNjetDouble> {
    const double = new OpenNjetDouble(options);
    await double.data.listen();
    double.origin = `http://127.0.0.1:${await double.control.open()}`;
    double.backendsOrigin = `http://127.0.0.1:${await double.backends.open()}`;
    return double;
  }

  /** The real port of an address of the configuration: `127.0.0.1:18080`. */
  port(address: string): number {
    return this.data.port(address);
  }

  /** All changes that were asked for, in order. */
  get requests(): readonly ControlRequest[] {
    return [...this.past, ...this.control.requests];
  }

  /** What the data plane has answered. */
  get served(): readonly ServedRequest[] {
    return this.data.served;
  }

  /** A value of `/v1/kv`. */
  keyValue(key: string): string | undefined {
    return this.keyValues.get(key);
  }

  /** HUP. */
  async reload(): Promise<void> {
    this.plane.reload();
    await this.data.listen();
  }

  /** Ended and started. What was posted to the balancer is gone. */
  async restart(): Promise<void> {
    this.plane.restart();
    this.backends.forget();
    await this.data.listen();
  }

  /** kill -9 and started. */
  async kill(): Promise<void> {
    this.plane.killAndStart();
    this.backends.forget();
    await this.data.listen();
  }

  /** The control server is away until the call ends; it comes back at the same address. */
  async whileUnreachable(during: () => Promise<void>): Promise<void> {
    await this.control.close();
    this.past.push(...this.control.requests);
    try {
      await during();
    } finally {
      this.control = this.controlServer();
      await this.control.open(Number(new URL(this.origin).port));
    }
  }

  async close(): Promise<void> {
    this.checks.close();
    await this.control.close();
    await this.backends.close();
    await this.data.close();
  }

  private controlServer(): DoubleControlServer {
    return new DoubleControlServer({
      plane: this.plane,
      faults: this.faults,
      checks: this.checks,
      keyValues: this.keyValues,
      metrics: () => metricsText(this.data.served),
      mostBody: this.options.mostBody ?? MEGABYTE,
      listen: () => this.data.listen(),
    });
  }
}
