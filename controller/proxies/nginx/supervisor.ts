import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import type { Logger } from "../../observability/logger.js";
import { type ControlClient, NotAnswering } from "./control-client.js";
import { ErrorLog } from "./error-log.js";
import type { ListenerPorts } from "./listener-ports.js";
import type { NginxInstallation } from "./parts.js";
import { processIdentity } from "./process-identity.js";
import type { NginxFolder } from "./run-folder.js";

/** Milliseconds. */
const POLL = 20;
/** A start that takes longer has failed. The journal is read meanwhile: a second for ten thousand hosts. */
const LONGEST_START = 60_000;
/** Times that ports are chosen before a start is given up. NGINX itself tries for 2.5 seconds to have one. */
const MOST_STARTS = 5;
const FIRST_WAIT = 50;
const LONGEST_WAIT = 10_000;
/** Who has run for so long starts again without delay. */
const SETTLED = 60_000;
/** How long a process may take that was told to end at once. */
const END_TIME = 2_000;
/** Workers whose master has died have as long for what they have under way. */
const ORPHAN_TIME = 30_000;
/** How often a master that is no child of ours is looked at. */
const WATCH = 500;

/** A master process of NGINX that we, or a controller before us in the same folder, have started in a group of its own. */
interface Master {
  pid: number;
  /** True as long as it runs: its number can't be another process's then. */
  alive(): boolean;
  /** Resolves when it has ended. */
  gone: Promise<void>;
  since: number;
}

export interface SupervisorParts {
  /** What the log calls the server; `nginx` without. */
  name?: string;
  installation: Pick<NginxInstallation, "binary" | "env">;
  folder: NginxFolder;
  /** Text of nginx.conf, with the ports as they are now. */
  configuration(): string;
  /** Where some were chosen here; undefined: all are given. */
  ports?: Pick<ListenerPorts, "chooseAgain">;
  /** Called before each start, while none of the server's processes is to be taken over. */
  prepare?(): void;
  /** Called before the server is told to read its configuration anew. */
  prepareReload?(): void;
  /** Where it writes before it has read its configuration; its standard error without. */
  errorLog?: string;
  /** Further arguments. */
  args?: readonly string[];
  client: Pick<ControlClient, "state">;
  logger: Logger;
  /** Called when NGINX answers after it was started anew. */
  onRestart(): void;
}

/**
 * Runs an NGINX: starts it, starts it again when it dies, and ends it. In a folder that stays it takes over one that is
 * still running there. It signals only processes that were started here or by a controller before it in the same folder.
 */
export class Supervisor {
  /** Times that NGINX had to be started again. */
  restarts = 0;
  private master: Master | undefined;
  /** Groups whose master has died, while workers may be left in them. */
  private readonly orphaned = new Set<number>();
  private stopping = false;
  private wake: (() => void) | undefined;
  private readonly log: ErrorLog;
  private readonly name: string;

  constructor(private readonly parts: SupervisorParts) {
    this.name = parts.name ?? "nginx";
    this.log = new ErrorLog(parts.logger, this.name);
  }

  /** Process number of the master; undefined while there is none. */
  get pid(): number | undefined {
    return this.master?.pid;
  }

  /** Resolves when NGINX answers. Rejects with what it said if it does not start. */
  async start(): Promise<void> {
    const { folder, configuration } = this.parts;
    const changed = folder.write(folder.configuration, configuration());
    const master = (folder.stays ? await this.takeOver(changed) : undefined) ?? (await this.beginOnFreePorts());
    void this.watch(master);
  }

  /** Stops taking connections, lets requests under way end within `graceMs`, then ends what is left. */
  async stop(graceMs: number): Promise<void> {
    this.stopping = true;
    this.wake?.();
    const latest = performance.now() + graceMs;
    const { master } = this;
    if (master !== undefined) {
      this.signal(master, "SIGQUIT");
      if (!(await within(master.gone, graceMs))) {
        this.parts.logger.warn(`${this.name} is ended with requests under way`, { afterSeconds: graceMs / 1000 });
        this.signal(master, "SIGTERM");
        await within(master.gone, END_TIME);
        if (master.alive()) signalGroup(master.pid, "SIGKILL");
        await within(master.gone, END_TIME);
      }
      // It may have died just before, without its workers.
      this.orphaned.add(master.pid);
    }
    await Promise.all([...this.orphaned].map((group) => this.emptyGroup(group, latest)));
  }

  /** The NGINX that runs in the folder already; undefined if none does. */
  private async takeOver(changed: boolean): Promise<Master | undefined> {
    const { client, logger } = this.parts;
    const state = await client.state().catch(() => undefined);
    if (state === undefined) return undefined;
    const identity = processIdentity(state.master);
    if (identity === undefined) {
      // Workers have answered whose master is gone.
      logger.warn(`${this.name} has died, and its workers are left: they are ended`, { pid: state.master });
      void this.emptyGroup(state.master, performance.now() + ORPHAN_TIME);
      return undefined;
    }
    const { master: pid } = state;
    const alive = () => processIdentity(pid) === identity;
    const master: Master = { pid, alive, gone: this.ended(alive), since: performance.now() };
    this.master = master;
    logger.info(`${this.name} is running already and is taken over; its log stays where it was`, { pid: master.pid });
    // It is told to read other settings, or other Lua code, without losing a connection.
    if (changed) {
      this.parts.prepareReload?.();
      this.signal(master, "SIGHUP");
    }
    return master;
  }

  /** As `begin`; with other ports where somebody else was faster to have those that were chosen here. */
  private async beginOnFreePorts(): Promise<Master> {
    const { folder, configuration, ports, logger } = this.parts;
    for (let start = 1; ; start++) {
      try {
        return await this.begin();
      } catch (error) {
        const { taken } = this.log;
        // What NGINX has said is what is told, also where no other port is found.
        const others = start < MOST_STARTS && (await ports?.chooseAgain(taken).catch(() => false));
        if (!others || this.stopping) throw error;
        logger.info(`${this.name} is started with other ports: somebody else has one that was chosen`, { taken });
        folder.write(folder.configuration, configuration());
      }
    }
  }

  /** Starts an NGINX and waits for its answer. */
  private async begin(): Promise<Master> {
    const { folder, client } = this.parts;
    // Nobody listens on it: it is what an NGINX leaves that was killed.
    rmSync(folder.socket, { force: true });
    this.parts.prepare?.();
    const master = await this.spawn();
    this.master = master;
    let ended = false;
    void master.gone.then(() => {
      ended = true;
    });
    const latest = performance.now() + LONGEST_START;
    while (!ended && !this.stopping && performance.now() < latest) {
      // An orphaned worker may answer on a connection from before.
      const state = await client.state().catch(() => undefined);
      if (state?.master === master.pid) return master;
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
    if (!ended) {
      this.signal(master, "SIGTERM");
      if (!(await within(master.gone, END_TIME))) signalGroup(master.pid, "SIGKILL");
    }
    this.master = undefined;
    throw new NotAnswering(
      `${this.name} does not start: ${this.log.why || (ended ? "it ended" : "it does not answer")}`,
    );
  }

  private async spawn(): Promise<Master> {
    const { installation, folder, errorLog = "stderr", args = [] } = this.parts;
    this.log.begin();
    // In a group of its own, so that Ctrl-C reaches us alone: we end it in order.
    const all = ["-p", folder.path, "-e", errorLog, ...args, "-c", folder.configuration];
    const child = spawn(installation.binary, all, {
      env: { ...process.env, ...installation.env },
      stdio: ["ignore", "ignore", "pipe"],
      detached: true,
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.log.take(text));
    const pid = await this.started(child);
    const guard = folder.passing === undefined ? undefined : guardOf(pid, folder.passing);
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    void exited.then(() => guard?.kill("SIGKILL"));
    // Orphaned workers keep the log open: the end of the master is what counts.
    const soon = exited.then(() => within(gone, POLL)).then(() => undefined);
    const alive = () => child.exitCode === null && child.signalCode === null;
    return { pid, alive, gone: soon, since: performance.now() };
  }

  /** Process number of a child; rejects where the program can't be started. */
  private started(child: ChildProcess): Promise<number> {
    return new Promise((resolve, reject) => {
      child.once("error", (error) => reject(new NotAnswering(`${this.name} does not start: ${error.message}`)));
      child.once("spawn", () => resolve(child.pid as number));
    });
  }

  /** Starts NGINX anew whenever it ends, until we are told to stop. */
  private async watch(first: Master): Promise<void> {
    const { logger } = this.parts;
    let master = first;
    for (let wait = FIRST_WAIT; ; ) {
      await master.gone;
      this.master = undefined;
      if (this.stopping) return;
      logger.error(`${this.name} has died and is started again`, { pid: master.pid });
      void this.emptyGroup(master.pid, performance.now() + ORPHAN_TIME);
      if (performance.now() - master.since > SETTLED) wait = FIRST_WAIT;
      for (;;) {
        await this.sleep(wait);
        if (this.stopping) return;
        wait = Math.min(LONGEST_WAIT, wait * 2);
        this.restarts++;
        try {
          master = await this.begin();
          break;
        } catch (error) {
          if (this.stopping) return;
          logger.error(`${this.name} could not be started again`, { error });
        }
      }
      this.parts.onRestart();
    }
  }

  /** Workers whose master is gone hold the ports: they are to let them go, and to end what they have under way. */
  private async emptyGroup(group: number, latest: number): Promise<void> {
    this.orphaned.add(group);
    let anybody = signalGroup(group, "SIGQUIT");
    while (anybody && performance.now() < latest) {
      await new Promise((resolve) => setTimeout(resolve, POLL));
      // As long as there is somebody the number of the group can't be another one's.
      anybody = signalGroup(group, 0);
    }
    if (anybody) signalGroup(group, "SIGKILL");
    this.orphaned.delete(group);
  }

  private async ended(alive: () => boolean): Promise<void> {
    while (alive()) await new Promise((resolve) => setTimeout(resolve, this.stopping ? POLL : WATCH));
  }

  private signal(master: Master, signal: NodeJS.Signals): void {
    if (!master.alive()) return;
    try {
      process.kill(master.pid, signal);
    } catch {
      // It has ended by itself.
    }
  }

  private async sleep(milliseconds: number): Promise<void> {
    if (this.stopping) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Ends an NGINX, and takes its folder away, when its standard input ends: when we have died. */
const GUARD = `cat >/dev/null; kill -QUIT "$1" && while kill -0 "$1"; do sleep 0.1; done; rm -rf -- "$2"`;

/** Nobody would take over what we leave in a temporary folder. */
function guardOf(pid: number, folder: string): ChildProcess {
  const guard = spawn("sh", ["-c", GUARD, "sh", String(pid), folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.on("error", () => undefined);
  guard.stdin?.on("error", () => undefined);
  guard.unref();
  return guard;
}

/** True if there was anybody in the group. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    return false;
  }
}

/** True if it happened in time. */
async function within(event: Promise<void>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  try {
    return await Promise.race([event.then(() => true as const), late]);
  } finally {
    clearTimeout(timer);
  }
}
