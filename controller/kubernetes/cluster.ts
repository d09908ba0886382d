import { isIP } from "node:net";
import type { ObjectState } from "../model/object-state.js";
import type { ObjectChange } from "../model/routing-model.js";
import type { EventSink } from "../observability/events.js";
import type { Logger } from "../observability/logger.js";
import type { ObjectRef } from "../resources/object-ref.js";
import { ApiClient } from "./api-client.js";
import { type ApiObject, isRecord } from "./api-object.js";
import type { Clock } from "./clock.js";
import { ClusterSource } from "./cluster-source.js";
import type { Credentials } from "./credentials.js";
import { EventRecorder } from "./event-recorder.js";
import { LeaderElection } from "./leader-election.js";
import type { LeaseTimes } from "./lease.js";
import { ObjectEvents } from "./object-events.js";
import { Reflector } from "./reflector.js";
import type { PublishedAddress } from "./status-content.js";
import { StatusWriter } from "./status-writer.js";

export interface ClusterOptions {
  credentials: Credentials;
  clock: Clock;
  /** Milliseconds since 1970. */
  wallClock: () => number;
  random: () => number;
  logger: Logger;
  namespaces: readonly string[];
  namespaceSelector?: string;
  /** `namespace/name` of the Service whose addresses are published. */
  publishService?: string;
  /** Addresses to publish, instead of those of a Service. */
  publishAddresses: readonly string[];
  /** Name of the Lease; replicas that serve the same classes share it. */
  leaseName: string;
  /** Namespace of the Lease; that of the credentials if absent. */
  leaseNamespace?: string;
  /** Name of the controller in Events. */
  controllerName: string;
  /** Of this replica, unlike that of any other. */
  identity: string;
  /** Takes changes over; resolves when they are in force. */
  change: (changes: ObjectChange[]) => Promise<void>;
  stateOf: (ref: ObjectRef) => ObjectState | undefined;
  referencedBy: (ref: ObjectRef) => string | undefined;
  leaseTimes?: LeaseTimes;
}

/** A cluster at work: its objects go into the model, and what becomes of them goes back as status and Events. */
export class Cluster {
  readonly #options: ClusterOptions;
  readonly #client: ApiClient;
  readonly #source: ClusterSource;
  readonly #events: EventRecorder;
  /** Takes what happens to what objects are served with; it becomes Events while this replica leads. */
  readonly objectEvents: EventSink;
  readonly #status: StatusWriter;
  #election: LeaderElection | undefined;
  #published: Reflector | undefined;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { clock, wallClock, random, logger, identity, namespaces, namespaceSelector, stateOf, referencedBy } =
      options;
    this.#client = new ApiClient(options.credentials, clock.now);
    const shared = { client: this.#client, clock, random, logger };
    this.#events = new EventRecorder({ ...shared, wallClock, identity, controller: options.controllerName });
    const leads = () => this.leads;
    this.#status = new StatusWriter({ ...shared, wallClock, events: this.#events, leads, stateOf, referencedBy });
    this.objectEvents = new ObjectEvents({
      events: this.#events,
      clock,
      leads,
      regarding: (ref) => this.#status.regarding(ref),
    });
    this.#source = new ClusterSource({
      ...shared,
      namespaces,
      ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
      observe: (change) => this.#status.observe(change),
      deliver: (changes) => {
        this.#status.delivering(changes);
        return options.change(changes);
      },
    });
  }

  /** Whether this replica writes status and Events. */
  get leads(): boolean {
    return this.#election?.leads ?? false;
  }

  /** Begins. Rejects if the credentials can't be read; a cluster that can't be reached is waited for. */
  async start(): Promise<void> {
    const { clock, wallClock, random, logger, leaseName, leaseNamespace, identity, leaseTimes } = this.#options;
    const access = await this.#client.access();
    this.#source.start();
    this.#follow();
    this.#election = new LeaderElection({
      client: this.#client,
      clock,
      wallClock,
      random,
      logger,
      namespace: leaseNamespace ?? access.namespace ?? "default",
      name: leaseName,
      identity,
      onLead: () => this.#status.touchAll(),
      ...(leaseTimes === undefined ? {} : { times: leaseTimes }),
    });
    this.#election.start();
  }

  /** The objects whose change is in force in the proxy. */
  applied(objects: ReadonlySet<string>): void {
    this.#status.applied(objects);
  }

  /** Ready once every collection was read and the proxy has acknowledged the first full state; else what is missing. */
  readiness(): { ready: boolean; waitingFor: string[] } {
    const ready = this.#source.synced;
    const waitingFor = this.#source.waitingFor();
    return { ready, waitingFor: ready ? [] : waitingFor.length > 0 ? waitingFor : ["the proxy"] };
  }

  /** Whether objects of a namespace are followed, and have been read. */
  follows(namespace: string): boolean {
    return this.#source.follows(namespace);
  }

  /** Stops following, gives the lease away, and ends every connection. */
  async close(): Promise<void> {
    await Promise.all([this.#source.close(), this.#published?.close(), this.#status.close(), this.#events.close()]);
    await this.#election?.close();
    await this.#client.close();
  }

  #follow(): void {
    const { publishAddresses, publishService, clock, random, logger } = this.#options;
    if (publishAddresses.length > 0) this.#status.publish(publishAddresses.map(addressOf));
    if (publishAddresses.length > 0 || publishService === undefined) return;
    const [namespace, name] = publishService.split("/");
    this.#published = new Reflector({
      client: this.#client,
      type: {
        kind: "Service",
        apiVersion: "v1",
        plural: "services",
        namespaced: true,
        fieldSelector: `metadata.name=${name}`,
        mayBeMissing: false,
      },
      namespace,
      clock,
      random,
      logger,
      onChange: (changes) => {
        for (const { object } of changes) this.#status.publish(object === undefined ? [] : addressesOf(object));
      },
    });
    this.#published.start();
  }
}

function addressOf(text: string): PublishedAddress {
  return isIP(text) === 0 ? { hostname: text } : { ip: text };
}

/** Of a load balancer, else the external addresses, else the name or the address inside of the cluster. */
function addressesOf(service: ApiObject): PublishedAddress[] {
  const spec = isRecord(service.spec) ? service.spec : {};
  const texts = (value: unknown) => (Array.isArray(value) ? value.filter((item) => typeof item === "string") : []);
  const balancer = isRecord(service.status) && isRecord(service.status.loadBalancer) ? service.status.loadBalancer : {};
  const points = Array.isArray(balancer.ingress) ? balancer.ingress.filter(isRecord) : [];
  const found = points.flatMap((point) => texts([point.ip || point.hostname]));
  const external = spec.type === "ExternalName" ? texts([spec.externalName]) : texts(spec.externalIPs);
  const inside = spec.type === "LoadBalancer" ? [] : texts([spec.clusterIP]).filter((text) => text !== "None");
  const [first] = [found, external, inside].filter((list) => list.length > 0);
  return [...new Set(first ?? [])].sort().map(addressOf);
}
