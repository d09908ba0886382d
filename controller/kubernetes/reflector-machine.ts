import { ApiError, statusOf } from "./api-error.js";
import { type ApiObject, isRecord, normalise } from "./api-object.js";
import { Backoff } from "./backoff.js";
import type { ResourceType } from "./resource-type.js";

/** What the reflector has to do next. */
export type Step =
  | { kind: "list"; continueToken: string }
  | { kind: "watch"; resourceVersion: string; timeoutSeconds: number }
  | { kind: "wait"; ms: number };

/** An object that came or changed, or (`object` undefined) that is gone. */
export interface Change {
  namespace: string;
  name: string;
  object: ApiObject | undefined;
}

/** Time that a watch may last; the server is asked for 5 to 10 minutes, as client-go does, so that load spreads. */
const WATCH_SECONDS = 300;
/** A watch that lived so long was a good one, even if nothing changed. */
const GOOD_WATCH_MS = 5_000;
/** A collection that is missing is looked for again after so long. */
const MISSING_POLL_MS = 5_000;
/** Answers 404 in a row after which objects that were there are taken for gone: a server that starts may err once. */
const GONE_AFTER = 3;
/** Failures in a row after which the resourceVersion itself is doubted, as after a restored backup. */
const RELIST_AFTER = 4;

/**
 * List and watch of one collection, without I/O: it is told what happened and answers what to do and which objects are
 * different now. It remembers the name and resourceVersion of each object, nothing more: enough to report, after a gap,
 * exactly the objects that changed and those that went.
 *
 * Rules: Kubernetes API concepts, "Efficient detection of changes" (list, then watch from the list's resourceVersion;
 * resume from the last one seen; start over on 410 Gone) and "Retrieving large results sets in chunks".
 */
export class ReflectorMachine {
  readonly #wanted: ResourceType;
  /** As wanted, or in its older version. */
  #type: ResourceType;
  readonly #backoff: Backoff;
  readonly #random: () => number;
  /** `namespace/name` -> resourceVersion. */
  readonly #known = new Map<string, string>();
  /** Keys that the list under way has brought so far. */
  #listed = new Set<string>();
  #next: "list" | "watch" = "list";
  #wait = 0;
  #continueToken = "";
  #resourceVersion = "";
  #watchBegan = 0;
  #watchBrought = false;
  #complete = false;
  #missing = false;
  #absences = 0;

  constructor(type: ResourceType, random: () => number) {
    this.#wanted = type;
    this.#type = type;
    this.#random = random;
    this.#backoff = new Backoff(random);
  }

  /** What to ask the server for: an older version where it does not serve the wanted one. */
  get type(): ResourceType {
    return this.#type;
  }

  /** True once the whole collection was read, or is known to be missing where it may be. */
  get complete(): boolean {
    return this.#complete;
  }

  /** True while the cluster does not have the collection. */
  get missing(): boolean {
    return this.#missing;
  }

  /** Number of objects that are there. */
  get size(): number {
    return this.#known.size;
  }

  next(): Step {
    if (this.#wait > 0) {
      const ms = this.#wait;
      this.#wait = 0;
      return { kind: "wait", ms };
    }
    if (this.#next === "list") return { kind: "list", continueToken: this.#continueToken };
    const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + this.#random()));
    return { kind: "watch", resourceVersion: this.#resourceVersion, timeoutSeconds };
  }

  /** A page of a list. The last one also reports what is not there any more. */
  listed(page: unknown): Change[] {
    const metadata = isRecord(page) && isRecord(page.metadata) ? page.metadata : undefined;
    if (metadata === undefined || typeof metadata.resourceVersion !== "string") {
      return this.listFailed(new Error("the answer is no list"));
    }
    const changes: Change[] = [];
    const items = isRecord(page) && Array.isArray(page.items) ? page.items : [];
    for (const item of items) {
      const object = normalise(item, this.#type);
      if (object === undefined) continue;
      this.#listed.add(keyOf(object));
      changes.push(...this.#set(object));
    }
    this.#missing = false;
    this.#absences = 0;
    this.#backoff.reset();
    this.#continueToken = typeof metadata.continue === "string" ? metadata.continue : "";
    if (this.#continueToken !== "") return changes;
    for (const key of this.#known.keys()) if (!this.#listed.has(key)) changes.push(this.#remove(key));
    this.#listed = new Set();
    this.#resourceVersion = metadata.resourceVersion;
    this.#complete = true;
    this.#next = "watch";
    return changes;
  }

  /**
   * A list that failed. On 410 the token of its next page is too old, and it starts over at once. A collection that the
   * cluster may do without is complete with a 404 (in each of its versions); one that we may do without, with a 403.
   */
  listFailed(error: unknown): Change[] {
    const status = statusOf(error);
    const { olderVersion } = this.#type;
    if (status === 404 && olderVersion !== undefined) {
      this.#startOver();
      this.#type = { ...this.#wanted, apiVersion: olderVersion, olderVersion: undefined };
      return [];
    }
    const expired = status === 410 && this.#continueToken !== "";
    this.#startOver();
    this.#wait = this.#backoff.next(error instanceof ApiError ? error.retryAfter : 0);
    if (expired && this.#backoff.failures === 1) this.#wait = 0;
    if (status === 403 && this.#type.mayBeForbidden) this.#complete = true;
    if (status !== 404 || !this.#type.mayBeMissing) return [];
    this.#backoff.reset();
    this.#wait = Math.round(MISSING_POLL_MS * (1 - this.#random() / 2));
    this.#absences += 1;
    if (this.#known.size > 0 && this.#absences < GONE_AFTER) return [];
    this.#missing = true;
    this.#complete = true;
    return this.clear();
  }

  /** The watch has been accepted. `now` in milliseconds. */
  watchBegan(now: number): void {
    this.#watchBegan = now;
    this.#watchBrought = false;
  }

  /** An event of the watch. Throws the error that an ERROR event carries: the watch has to be ended with it. */
  event(event: unknown): Change[] {
    if (!isRecord(event)) throw new Error("the event of a watch is no object");
    if (event.type === "ERROR") {
      const status = isRecord(event.object) ? event.object : {};
      throw ApiError.of(typeof status.code === "number" ? status.code : 500, status);
    }
    const object = normalise(event.object, this.#type);
    if (object === undefined && event.type !== "BOOKMARK") throw new Error("the event of a watch carries no object");
    const version = isRecord(event.object) && isRecord(event.object.metadata) && event.object.metadata.resourceVersion;
    if (typeof version === "string" && version !== "") this.#resourceVersion = version;
    this.#watchBrought = true;
    this.#backoff.reset();
    if (event.type === "BOOKMARK" || object === undefined) return [];
    if (event.type !== "DELETED") return this.#set(object);
    return this.#known.has(keyOf(object)) ? [this.#remove(keyOf(object))] : [];
  }

  /** The watch has ended, with an error or (undefined) by itself. It is resumed where it was, unless that is too old. */
  watchEnded(now: number, error: unknown): void {
    const good = this.#watchBrought || (this.#watchBegan > 0 && now - this.#watchBegan >= GOOD_WATCH_MS);
    this.#watchBegan = 0;
    if (good) this.#backoff.reset();
    const status = statusOf(error);
    const wait = this.#backoff.next(error instanceof ApiError ? error.retryAfter : 0);
    const tooOld = status === 410;
    if (tooOld || status === 404 || this.#backoff.failures >= RELIST_AFTER) this.#startOver();
    // The first time there is nothing to wait for: what went wrong was the old state, or the end of a long watch.
    this.#wait = good || (tooOld && this.#backoff.failures === 1) ? Math.min(wait, 1) : wait;
  }

  /** Forgets everything, and reports it as gone. */
  clear(): Change[] {
    return [...this.#known.keys()].map((key) => this.#remove(key));
  }

  #startOver(): void {
    this.#type = this.#wanted;
    this.#next = "list";
    this.#continueToken = "";
    this.#listed = new Set();
  }

  #set(object: ApiObject): Change[] {
    const key = keyOf(object);
    if (this.#known.get(key) === object.metadata.resourceVersion) return [];
    this.#known.set(key, object.metadata.resourceVersion);
    return [{ namespace: object.metadata.namespace ?? "", name: object.metadata.name, object }];
  }

  #remove(key: string): Change {
    this.#known.delete(key);
    const slash = key.indexOf("/");
    return { namespace: key.slice(0, slash), name: key.slice(slash + 1), object: undefined };
  }
}

function keyOf(object: ApiObject): string {
  return `${object.metadata.namespace ?? ""}/${object.metadata.name}`;
}
