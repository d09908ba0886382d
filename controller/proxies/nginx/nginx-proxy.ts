import { pieceOf } from "../../model/pieces.js";
import type { Upstream } from "../../model/types.js";
import type { Logger } from "../../observability/logger.js";
import type { MetricsSource } from "../../observability/metrics-text.js";
import type { Plan, PlanStep } from "../../reconcile/plan.js";
import type { PeerNumbers } from "../balancing-metrics.js";
import { PeerStates } from "../peer-states.js";
import { failureOf } from "../plan-step.js";
import type { ApplyFailure, Proxy as DrivenProxy, PeerStateChange } from "../proxy.js";
import { AccessLogPipe } from "./access-log.js";
import type { ControlClient } from "./control-client.js";
import { FolderClaim } from "./folder-claim.js";
import { Journal } from "./journal.js";
import { NginxMetrics } from "./nginx-metrics.js";
import { makePiece, PIECE, type Piece, parsePieceName, pieceName } from "./piece.js";
import { certificatePiece, type ImageCompiler, peerStatesPiece, pieceOfStep } from "./plan-pieces.js";
import { PostedPieces } from "./posted-pieces.js";
import type { NginxFolder } from "./run-folder.js";
import { StateKeeper } from "./state-keeper.js";

/** Steps after which other work gets its turn while images are made. */
const STEPS_PER_TURN = 32;
/** Milliseconds between looks whether NGINX still holds what it was given. */
const CHECK_INTERVAL = 1_000;
const KINDS = { host: PIECE.shard, upstream: PIECE.upstream, certificate: PIECE.certificate };
const DEFAULT_CERTIFICATE = pieceName({ kind: PIECE.certificate, key: "" });

/** The ports of the two listeners, as they are now. */
export interface ListeningPorts {
  readonly http: { port: number };
  readonly https: { port: number };
}

/** Who sees to it that an NGINX runs. */
export interface NginxRunner {
  /** Resolves when NGINX answers; rejects with what is in the way. */
  start(): Promise<void>;
  /** Ends what was started here, within about `graceMs`. */
  stop(graceMs: number): Promise<void>;
  /** Times that NGINX had to be started again. */
  readonly restarts: number;
}

export interface NginxProxyParts {
  compiler: ImageCompiler;
  folder: NginxFolder;
  client: ControlClient;
  logger: Logger;
  /** `onRestart` is to be called when NGINX was started anew. */
  makeRunner(onRestart: () => void): NginxRunner;
  /** PEM; for handshakes that no object has a certificate for. Undefined: what NGINX has stays. */
  defaultCertificate: { chain: string; key: string } | undefined;
  /** Of an NGINX that is started here, known for sure when it answers; undefined: not known. */
  ports: ListeningPorts | undefined;
  /** NGINX writes its access log into the pipe of the folder. */
  accessLog: boolean;
}

/**
 * NGINX with the balancer, driven over its control socket. Plans become pieces, of which only what differs is shipped; what
 * NGINX accepts goes into the journal. Everything happens in turn: plans, states of peers, and looks for drift.
 */
export class NginxProxy implements DrivenProxy {
  private readonly peerStates = new PeerStates();
  private readonly runner: NginxRunner;
  private keeper: StateKeeper | undefined;
  private posted: PostedPieces | undefined;
  private claim: FolderClaim | undefined;
  private journal: Journal | undefined;
  private accessLog: AccessLogPipe | undefined;
  private turn: Promise<unknown> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private checking = false;
  /** Upstreams whose states are to be handed on. */
  private readonly changedStates = new Set<string>();
  /** Names of what plans have set; with the upstream, where it is one. */
  private readonly planned = new Map<string, Upstream | undefined>();
  private generation = "";
  /** The whole state was in force in all workers once. */
  private settled = false;
  private completed = false;
  private closing: Promise<void> | undefined;

  constructor(private readonly parts: NginxProxyParts) {
    this.runner = parts.makeRunner(() => this.check());
  }

  /** Starts NGINX, or finds it, and takes over what it holds. Rejects with what is in the way. */
  async listen(): Promise<void> {
    const { folder, client, logger, defaultCertificate } = this.parts;
    try {
      this.claim = await FolderClaim.take(folder.claim);
      const journal = await Journal.open(folder.journal);
      this.journal = journal;
      const peerStates = (key: string) => peerStatesPiece(key, this.peerStates.of(key));
      const keeper = new StateKeeper({ client, journal, logger, peerStates });
      if (this.parts.accessLog) this.accessLog = await AccessLogPipe.open(folder.accessLog);
      await this.runner.start();
      await keeper.adopt();
      this.keeper = keeper;
      this.posted = new PostedPieces({ client, journal, logger, keep: (pieces) => keeper.keep(pieces) });
      this.generation = keeper.summary?.generation ?? "";
      if (defaultCertificate !== undefined) {
        await this.deliver([certificatePiece({ host: "", ...defaultCertificate })]);
      }
    } catch (error) {
      await this.runner.stop(0);
      await this.release();
      throw error;
    }
    this.timer = setInterval(() => this.check(), CHECK_INTERVAL);
    this.check();
  }

  addresses(): { http: { port: number } | undefined; https: { port: number } | undefined } {
    const { ports } = this.parts;
    return { http: ports && { port: ports.http.port }, https: ports && { port: ports.https.port } };
  }

  apply(plan: Plan): Promise<{ generation: string; failures: ApplyFailure[] }> {
    return this.inTurn(async () => {
      const failures = await this.carryOut(plan);
      this.generation = plan.generation;
      for (const failure of failures) this.parts.logger.warn("step refused", { ...failure });
      return { generation: this.generation, failures };
    });
  }

  /** Takes away what NGINX holds from before and what no plan has named. */
  complete(): Promise<void> {
    return this.inTurn(async () => {
      await this.deliver(this.leftOver(), this.generation);
      this.completed = true;
    });
  }

  setPeerStates(states: readonly PeerStateChange[]): void {
    for (const state of states) {
      this.peerStates.set(state);
      this.changedStates.add(state.upstream);
    }
    if (states.length > 0) this.inTurn(() => this.deliverStates()).catch(() => undefined);
  }

  /** It serves from when all workers have acknowledged the first full state, as long as NGINX answers. */
  state(): { generation: string; serving: boolean } {
    const { keeper } = this;
    if (keeper === undefined || this.closing !== undefined) return { generation: this.generation, serving: false };
    if (!this.settled) this.settled = this.completed && keeper.inStep;
    return { generation: this.generation, serving: this.settled && keeper.summary !== undefined };
  }

  metrics(prefix: string, version: string): MetricsSource[] {
    const subject = {
      client: this.parts.client,
      keeper: () => this.keeper,
      restarts: () => this.runner.restarts,
      peers: () => this.peerNumbers(),
      now: Date.now,
    };
    return [new NginxMetrics(prefix, version, subject)];
  }

  close(graceMs: number): Promise<void> {
    this.closing ??= this.shutDown(graceMs);
    return this.closing;
  }

  private async carryOut(plan: Plan): Promise<ApplyFailure[]> {
    const failures: ApplyFailure[] = [];
    const pieces: Piece[] = [];
    const steps = new Map<string, PlanStep>();
    if (plan.full) this.planned.clear();
    for (const [i, step] of plan.steps.entries()) {
      if (i > 0 && i % STEPS_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      try {
        const piece = pieceOfStep(step, this.parts.compiler);
        pieces.push(piece);
        steps.set(pieceName(piece), step);
      } catch (error) {
        failures.push(failureOf(step, error));
      }
      this.plan(step);
      if (step.step === "remove-upstream") pieces.push(makePiece(PIECE.peerStates, step.key, undefined));
    }
    if (plan.full) pieces.push(...this.leftOver());
    for (const refused of await this.deliver(pieces, plan.generation)) {
      const step = steps.get(pieceName(refused));
      if (step === undefined) this.parts.logger.warn("nginx refused a piece", { ...refused });
      else failures.push(failureOf(step, Object.assign(new Error(refused.message), { code: refused.code })));
    }
    return failures;
  }

  /** Takes note of what a step names. A piece that is refused is named too: its last good state stays. */
  private plan(step: PlanStep): void {
    const { kind, piece } = pieceOf(step);
    const name = pieceName({ kind: KINDS[kind], key: piece });
    if (step.step === "remove-upstream") this.peerStates.forget(piece);
    if (step.step.startsWith("remove")) this.planned.delete(name);
    else this.planned.set(name, step.step === "set-upstream" ? step.upstream : undefined);
  }

  /** Removals of what NGINX holds and no plan has named; routes first. States stay where checks will tell new ones. */
  private leftOver(): Piece[] {
    const order: readonly number[] = [PIECE.shard, PIECE.peerStates, PIECE.upstream, PIECE.certificate];
    return (this.keeper?.names() ?? [])
      .filter((name) => {
        const { kind, key } = parsePieceName(name);
        if (kind === PIECE.peerStates) {
          return this.planned.get(pieceName({ kind: PIECE.upstream, key }))?.healthCheck === undefined;
        }
        return name !== DEFAULT_CERTIFICATE && !this.planned.has(name);
      })
      .map((name) => {
        const { kind, key } = parsePieceName(name);
        return makePiece(kind, key, undefined);
      })
      .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  }

  private *peerNumbers(): Iterable<{ upstream: string; count(): PeerNumbers }> {
    for (const upstream of this.planned.values()) {
      if (upstream !== undefined) yield { upstream: upstream.peers.key, count: () => this.countPeers(upstream) };
    }
  }

  private countPeers({ peers: { key, peers } }: Upstream): PeerNumbers {
    const states = new Map(this.peerStates.of(key).map(({ address, port, state }) => [`${address} ${port}`, state]));
    const numbers = { unchecked: 0, up: 0, down: 0, draining: 0 };
    for (const { address, port, draining } of peers) {
      numbers[draining ? "draining" : (states.get(`${address} ${port}`) ?? "unchecked")]++;
    }
    return numbers;
  }

  private async deliverStates(): Promise<void> {
    const keys = [...this.changedStates];
    this.changedStates.clear();
    if (keys.length === 0) return;
    for (const refused of await this.deliver(keys.map((key) => peerStatesPiece(key, this.peerStates.of(key))))) {
      this.parts.logger.warn("nginx refused states of peers", { ...refused });
    }
  }

  private deliver(pieces: readonly Piece[], generation?: string) {
    if (this.keeper === undefined) throw new Error("nginx has not been started");
    return this.keeper.deliver(pieces, generation);
  }

  /** Looks, in turn, whether NGINX still holds what it was given. */
  private check(): void {
    const { keeper } = this;
    if (this.checking || keeper === undefined || this.closing !== undefined) return;
    this.checking = true;
    this.inTurn(async () => {
      await keeper.check();
      if (keeper.summary !== undefined) await this.posted?.follow(keeper.summary);
    })
      .catch((error: unknown) => keeper.lost(error))
      .finally(() => {
        this.checking = false;
      });
  }

  private inTurn<T>(task: () => Promise<T>): Promise<T> {
    const result = this.turn.then(task);
    this.turn = result.catch(() => undefined);
    return result;
  }

  private async shutDown(graceMs: number): Promise<void> {
    clearInterval(this.timer);
    // What is under way is brought to its end, but nothing is waited for.
    this.keeper?.stop();
    await this.turn;
    await this.runner.stop(graceMs);
    await this.release();
  }

  private async release(): Promise<void> {
    await this.parts.client.close();
    await this.journal?.close();
    await this.claim?.release();
    await this.accessLog?.close();
    this.parts.folder.remove();
  }
}
