import cluster, { type Worker } from "node:cluster";
import { readFile } from "node:fs/promises";
import { Core, CoreError, type CoreModuleOrBytes, loadBundle } from "../../binding/index.js";
import { BundleRouter } from "./bundle-router.js";

/** From the primary: a bundle, by a number that rises. From a worker: it is in force there, or why it is not; 0: it wants one. */
interface BundleMessage {
  njetBundle: number;
  bytes?: Uint8Array;
  refused?: string;
}

function isBundleMessage(message: unknown): message is BundleMessage {
  return typeof message === "object" && message !== null && "njetBundle" in message;
}

/** A worker that ends sooner is not replaced before this time is over (milliseconds): what ends it may end the next one too. */
const SHORT_LIFE = 1000;

/** What the primary tells of. */
export interface PrimaryEvents {
  /** Every worker has the bundle; told again when a worker that came later has it too. */
  inForce?: (generation: number) => void;
  /** A worker has ended without having been told to; another one takes its place. */
  workerLost?: (pid: number | undefined) => void;
}

/**
 * The primary of a cluster. Each worker is a process with an instance of the core of its own, since a WebAssembly.Module goes to
 * threads, but not to processes; what they share is the bundle. The primary tries each bundle first, so that a bad one reaches nobody,
 * and hands the last good one to workers that come later.
 */
export class ClusterPrimary {
  #generation = 0;
  #bytes: Uint8Array | undefined;
  /** By worker: the generation that is in force there, from when on it listens to the primary. */
  readonly #inForce = new Map<number, number>();
  readonly #started = new Map<number, number>();
  #reading: Promise<unknown> = Promise.resolve();
  #ending = false;

  /** `core` is the primary's own instance; it decides nothing. */
  constructor(
    readonly core: Core,
    readonly events: PrimaryEvents = {},
  ) {
    // So that bytes go as bytes.
    cluster.setupPrimary({ serialization: "advanced" });
    cluster.on("message", (worker, message: unknown) => {
      if (isBundleMessage(message)) this.#told(worker, message);
    });
    cluster.on("exit", (worker) => this.#lost(worker));
  }

  /** Reads a file and puts its bundle in force. Rejects with CoreError, or an error of the file; what was in force stays. */
  loadFile(path: string): Promise<number> {
    // One after another: a file that was read earlier must not come into force later.
    const loaded = this.#reading.then(async () => this.load(await readFile(path)));
    this.#reading = loaded.catch(() => {});
    return loaded;
  }

  /** Puts a bundle in force in every worker, now or as soon as it is there. Returns its generation. Throws CoreError. */
  load(bytes: Uint8Array): number {
    loadBundle(this.core, bytes).table.free();
    this.#bytes = bytes;
    this.#generation++;
    for (const worker of this.#workers()) this.#send(worker);
    return this.#generation;
  }

  /** Starts workers. They listen once they have a bundle. */
  fork(count: number): void {
    for (let i = 0; i < count; i++) this.#start();
  }

  /** Ends the workers after the requests under way. */
  async end(): Promise<void> {
    this.#ending = true;
    const ended = this.#workers().map((worker) => new Promise((resolve) => worker.once("exit", resolve)));
    for (const worker of this.#workers()) worker.disconnect();
    await Promise.all(ended);
  }

  #workers(): Worker[] {
    return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  }

  #start(): void {
    const worker = cluster.fork();
    // What is sent to one that has just died, by Node itself too, is an error of the channel, which would end the primary.
    worker.on("error", () => {});
    this.#started.set(worker.id, performance.now());
  }

  #send(worker: Worker): void {
    // What comes before a worker listens would be lost: its modules are loaded while the channel is open.
    if (!this.#bytes || !worker.isConnected() || !this.#inForce.has(worker.id)) return;
    // One that has just died is an error of the channel, which would end the primary; its exit is told of by itself.
    worker.send({ njetBundle: this.#generation, bytes: this.#bytes } satisfies BundleMessage, () => {});
  }

  #told(worker: Worker, { njetBundle, refused }: BundleMessage): void {
    // The primary has tried it: a worker that can't take it is broken (its memory is short), and a new one is not.
    if (refused !== undefined) return void worker.kill();
    this.#inForce.set(worker.id, njetBundle);
    if (njetBundle === 0) {
      this.#send(worker);
      return;
    }
    if (this.#workers().every(({ id }) => this.#inForce.get(id) === this.#generation)) {
      this.events.inForce?.(this.#generation);
    }
  }

  #lost(worker: Worker): void {
    const lived = performance.now() - (this.#started.get(worker.id) ?? 0);
    this.#inForce.delete(worker.id);
    this.#started.delete(worker.id);
    if (this.#ending || worker.exitedAfterDisconnect) return;
    this.events.workerLost?.(worker.process.pid);
    setTimeout(
      () => {
        if (!this.#ending) this.#start();
      },
      lived < SHORT_LIFE ? SHORT_LIFE - lived : 0,
    );
  }
}

/**
 * The worker's side: a router that follows the primary. Resolves once the first bundle is in force, which is the time to
 * listen. `wasm` is the core: bytes or a compiled module. Rejects with CoreError where it is none, or in a process that is no worker.
 */
export async function followPrimary(wasm: CoreModuleOrBytes): Promise<BundleRouter> {
  if (!cluster.isWorker) throw new CoreError("CORE_STATE", "this process is no worker of a cluster");
  const router = new BundleRouter(await Core.load(wasm));
  // Where the primary has died the channel is an error, and its end is told of by itself.
  const tell = (said: BundleMessage) => process.send?.(said, undefined, undefined, () => {});
  return new Promise((resolve) => {
    process.on("message", (message: unknown) => {
      if (!isBundleMessage(message) || !message.bytes) return;
      const { njetBundle, bytes } = message;
      try {
        router.load(bytes);
      } catch (error) {
        tell({ njetBundle, refused: error instanceof Error ? error.message : String(error) });
        return;
      }
      tell({ njetBundle });
      resolve(router);
    });
    tell({ njetBundle: 0 });
  });
}
