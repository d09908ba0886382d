import type { Logger } from "../observability/logger.js";
import { plain } from "../resources/problem.js";
import type { ApiClient } from "./api-client.js";
import { statusOf } from "./api-error.js";
import type { Clock } from "./clock.js";
import { type Change, ReflectorMachine } from "./reflector-machine.js";
import { listPath, type ResourceType, watchPath } from "./resource-type.js";

/** Objects a page of a list. */
const PAGE = 500;
/** Bookmarks come about once a minute; a watch that is silent for longer is taken for dead. */
export const SILENCE_MS = 90_000;

export interface ReflectorOptions {
  client: ApiClient;
  type: ResourceType;
  /** Empty: all namespaces. */
  namespace: string;
  clock: Clock;
  random: () => number;
  logger: Logger;
  /** Called with each batch of changes, and with none when only `complete` changed. */
  onChange: (changes: Change[]) => void;
  silenceMs?: number;
  pageSize?: number;
}

/** Follows one collection until it is closed, whatever the API server does: the machine decides, this carries out. */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #machine: ReflectorMachine;
  readonly #end = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** The failure that was said last, so that each is said once. */
  #said = "";

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#machine = new ReflectorMachine(options.type, options.random);
  }

  get complete(): boolean {
    return this.#machine.complete;
  }

  get size(): number {
    return this.#machine.size;
  }

  /** `virtualservers` or `virtualservers in shop`, for people. */
  get label(): string {
    const { type, namespace } = this.#options;
    return namespace === "" ? type.plural : `${type.plural} in ${namespace}`;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Stops; resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#running;
  }

  /** Reports everything as gone: for a namespace that is not watched any more. What is still under way is not to be listened to. */
  forget(): Change[] {
    return this.#machine.clear();
  }

  async #run(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      const step = this.#machine.next();
      if (step.kind === "wait") await this.#options.clock.sleep(step.ms, signal);
      else if (step.kind === "list") await this.#list(step.continueToken);
      else await this.#watch(step.resourceVersion, step.timeoutSeconds);
    }
  }

  async #list(continueToken: string): Promise<void> {
    const { client, namespace, pageSize } = this.#options;
    const wasComplete = this.complete;
    const { type } = this.#machine;
    let changes: Change[];
    try {
      const path = listPath(type, namespace, pageSize ?? PAGE, continueToken);
      const page = await client.request({ method: "GET", path, signal: this.#end.signal });
      changes = this.#machine.listed(page);
      this.#recovered();
    } catch (error) {
      if (this.#end.signal.aborted) return;
      changes = this.#machine.listFailed(error);
      const asksOlder = type.olderVersion !== undefined && this.#machine.type.apiVersion === type.olderVersion;
      if (asksOlder) return;
      if (this.#machine.missing) this.#say("info", "a kind is not installed in the cluster; it is looked for", error);
      else if (statusOf(error) !== 410) this.#say("warn", "cannot list", error);
    }
    if (changes.length > 0 || this.complete !== wasComplete) this.#options.onChange(changes);
  }

  async #watch(resourceVersion: string, timeoutSeconds: number): Promise<void> {
    const { client, namespace, clock, silenceMs } = this.#options;
    // Of its own, so that leaving the loop on an error ends the request too.
    const request = new AbortController();
    const signal = AbortSignal.any([this.#end.signal, request.signal]);
    const path = watchPath(this.#machine.type, namespace, resourceVersion, timeoutSeconds);
    let failure: unknown;
    try {
      this.#machine.watchBegan(clock.now());
      for await (const event of client.stream(path, silenceMs ?? SILENCE_MS, signal)) {
        const changes = this.#machine.event(event);
        this.#recovered();
        if (changes.length > 0) this.#options.onChange(changes);
      }
    } catch (error) {
      failure = error;
    } finally {
      request.abort();
    }
    if (this.#end.signal.aborted) return;
    this.#machine.watchEnded(clock.now(), failure);
    const status = statusOf(failure);
    if (status !== 0 && status !== 410) this.#say("warn", "cannot watch", failure);
  }

  #say(level: "info" | "warn", message: string, error: unknown): void {
    const problem = plain(error instanceof Error ? error.message : String(error));
    const text = `${message}\0${statusOf(error)}\0${problem}`;
    if (text === this.#said) return;
    this.#said = text;
    this.#options.logger[level](message, { resource: this.label, status: statusOf(error) || undefined, problem });
  }

  #recovered(): void {
    if (this.#said === "") return;
    this.#said = "";
    this.#options.logger.info("the API server answers again", { resource: this.label });
  }
}
