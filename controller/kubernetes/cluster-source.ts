import type { ObjectChange } from "../model/routing-model.js";
import type { Logger } from "../observability/logger.js";
import { type Kind, refText } from "../resources/object-ref.js";
import type { ApiClient } from "./api-client.js";
import { type ApiObject, isRecord } from "./api-object.js";
import type { Clock } from "./clock.js";
import { Reflector } from "./reflector.js";
import type { Change } from "./reflector-machine.js";
import { INGRESS_CLASSES, NAMESPACED_TYPES, namespaceType, type ResourceType } from "./resource-type.js";

export interface ClusterSourceOptions {
  client: ApiClient;
  clock: Clock;
  random: () => number;
  logger: Logger;
  /** Namespaces to watch; none given means all of them, unless there is a selector. */
  namespaces: readonly string[];
  /** Label selector of namespaces to watch, beside those given by name. */
  namespaceSelector?: string;
  /** Takes changes over; resolves when they are in force. Meanwhile further ones are gathered. */
  deliver: (changes: ObjectChange[]) => Promise<void>;
  /** Told of each object of a kind that has a status, also where only its status is another one. */
  observe?: (change: ObjectChange) => void;
  silenceMs?: number;
  pageSize?: number;
}

/** Kinds whose status is written here: each write comes back as a change, which must not build anything anew. */
const WITH_STATUS: ReadonlySet<string> = new Set(["Ingress", "VirtualServer", "VirtualServerRoute"]);

/** The collections of one scope. Its changes are held back until all of them are complete: half a state is none. */
interface Scope {
  namespace: string;
  reflectors: Map<ResourceType, Reflector>;
  held: Map<string, ObjectChange>;
  released: boolean;
}

/**
 * The objects of a cluster. First everything is read, then handed over in one batch, so that the first state is a whole
 * one; from then on changes are handed over in batches, one for each turn of the event loop.
 */
export class ClusterSource {
  readonly #options: ClusterSourceOptions;
  /** By namespace; the empty one holds what belongs to the whole cluster. */
  readonly #scopes = new Map<string, Scope>();
  /** Scopes whose changes are held back. */
  readonly #holding = new Set<Scope>();
  readonly #pending = new Map<string, ObjectChange>();
  /** What of each object with a status makes it another one: generation, labels and annotations. */
  readonly #content = new Map<string, string>();
  #selected: Reflector | undefined;
  readonly #leaving = new Set<Promise<void>>();
  #started = false;
  #delivering = false;
  #scheduled = false;
  #delivered = false;
  #closed = false;

  constructor(options: ClusterSourceOptions) {
    this.#options = options;
  }

  /** Begins to follow the cluster. Returns at once. */
  start(): void {
    const { namespaces, namespaceSelector } = this.#options;
    if (this.#everywhere) this.#open("", [INGRESS_CLASSES, ...NAMESPACED_TYPES]);
    // Rights in some namespaces only may well not reach to what belongs to the cluster.
    else this.#open("", [{ ...INGRESS_CLASSES, mayBeForbidden: true }]);
    for (const namespace of new Set(namespaces)) this.#open(namespace, NAMESPACED_TYPES);
    if (namespaceSelector === undefined) return;
    this.#selected = this.#reflector(namespaceType(namespaceSelector), "", (changes) => this.#onNamespaces(changes));
    this.#selected.start();
  }

  /** True once the first whole state has been taken over. */
  get synced(): boolean {
    return this.#delivered;
  }

  /** Whether objects of a namespace are followed, and have been read. */
  follows(namespace: string): boolean {
    return this.#scopes.get(this.#everywhere ? "" : namespace)?.released ?? false;
  }

  /** Collections that have not been read to their end yet, for people. */
  waitingFor(): string[] {
    const all = [...this.#scopes.values()].flatMap((scope) => [...scope.reflectors.values()]);
    if (this.#selected !== undefined) all.push(this.#selected);
    return all.filter((reflector) => !reflector.complete).map((reflector) => reflector.label);
  }

  /** Stops following; resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#closed = true;
    const all = [...this.#scopes.values()].flatMap((scope) => [...scope.reflectors.values()]);
    await Promise.all([this.#selected?.close(), ...all.map((reflector) => reflector.close()), ...this.#leaving]);
  }

  get #everywhere(): boolean {
    return this.#options.namespaces.length === 0 && this.#options.namespaceSelector === undefined;
  }

  #reflector(type: ResourceType, namespace: string, onChange: (changes: Change[]) => void): Reflector {
    const { client, clock, random, logger, silenceMs, pageSize } = this.#options;
    return new Reflector({ client, type, namespace, clock, random, logger, onChange, silenceMs, pageSize });
  }

  #open(namespace: string, types: readonly ResourceType[]): void {
    const scope: Scope = { namespace, reflectors: new Map(), held: new Map(), released: false };
    this.#scopes.set(namespace, scope);
    this.#holding.add(scope);
    for (const type of types) {
      const reflector = this.#reflector(type, namespace, (changes) => this.#onChange(scope, type, changes));
      scope.reflectors.set(type, reflector);
    }
    for (const reflector of scope.reflectors.values()) reflector.start();
  }

  /** A namespace that carries the labels now, or does not any more. */
  #onNamespaces(changes: Change[]): void {
    for (const { name, object } of changes) {
      if (this.#options.namespaces.includes(name)) continue;
      if (object === undefined) this.#leave(name);
      else if (!this.#scopes.has(name)) this.#open(name, NAMESPACED_TYPES);
    }
    this.#release();
  }

  #leave(namespace: string): void {
    const scope = this.#scopes.get(namespace);
    if (scope === undefined) return;
    this.#scopes.delete(namespace);
    this.#holding.delete(scope);
    for (const [type, reflector] of scope.reflectors) {
      for (const change of this.#take(type, reflector.forget())) this.#pending.set(refText(change), change);
      this.#leaving.add(reflector.close());
    }
  }

  #onChange(scope: Scope, type: ResourceType, changes: Change[]): void {
    // What a namespace that was left still delivers is of no concern.
    if (this.#closed || this.#scopes.get(scope.namespace) !== scope) return;
    const target = scope.released ? this.#pending : scope.held;
    for (const change of this.#take(type, changes)) target.set(refText(change), change);
    this.#release();
  }

  /** What of the changes concerns the model. */
  *#take(type: ResourceType, changes: readonly Change[]): Generator<ObjectChange> {
    const kind = type.kind as Kind;
    for (const { namespace, name, object } of changes) {
      const change: ObjectChange = { kind, namespace, name, object };
      if (WITH_STATUS.has(kind)) {
        this.#options.observe?.(change);
        const key = refText(change);
        const content = object === undefined ? undefined : contentOf(object);
        const same = content !== undefined && this.#content.get(key) === content;
        if (content === undefined) this.#content.delete(key);
        else this.#content.set(key, content);
        if (same) continue;
      }
      yield change;
    }
  }

  /** Lets the changes of complete scopes through. The very first time all scopes have to be complete. */
  #release(): void {
    if (!this.#started && this.waitingFor().length > 0) return;
    for (const scope of this.#holding) {
      if ([...scope.reflectors.values()].some((reflector) => !reflector.complete)) continue;
      scope.released = true;
      this.#holding.delete(scope);
      for (const [key, change] of scope.held) this.#pending.set(key, change);
      scope.held.clear();
    }
    const first = !this.#started;
    this.#started = true;
    if ((first || this.#pending.size > 0) && !this.#scheduled && !this.#delivering) {
      this.#scheduled = true;
      setImmediate(() => void this.#flush());
    }
  }

  async #flush(): Promise<void> {
    this.#scheduled = false;
    if (this.#closed) return;
    this.#delivering = true;
    const changes = [...this.#pending.values()];
    this.#pending.clear();
    try {
      await this.#options.deliver(changes);
      this.#delivered = true;
    } catch (error) {
      this.#options.logger.error("changes could not be taken over", { error });
    }
    this.#delivering = false;
    if (this.#pending.size > 0) this.#release();
  }
}

/** Tells apart what an author wrote; generation follows the spec alone (Kubernetes API conventions, "Metadata"). */
function contentOf(object: ApiObject): string {
  const { uid, generation, labels, annotations, resourceVersion } = object.metadata;
  const version = generation === undefined ? resourceVersion : generation;
  return JSON.stringify([uid, version, isRecord(labels) ? labels : 0, isRecord(annotations) ? annotations : 0]);
}
