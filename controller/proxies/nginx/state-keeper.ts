import type { Logger } from "../../observability/logger.js";
import {
  type BatchAnswer,
  type ControlClient,
  ControlError,
  type RefusedPiece,
  type StateSummary,
} from "./control-client.js";
import { DigestIndex } from "./digest-index.js";
import type { Journal } from "./journal.js";
import { makePiece, NO_DIGEST, PIECE, type Piece, parsePieceName, pieceName } from "./piece.js";

/** A batch blocks the worker that takes it while it is checked, so it is bounded. */
const MOST_PIECES = 512;
const MOST_BYTES = 4 * 1024 * 1024;
/** Milliseconds between tries while NGINX does not answer. */
const FIRST_WAIT = 20;
const LONGEST_WAIT = 1_000;
/** What leads to others comes after them, and goes before them. */
const ORDER: readonly number[] = [PIECE.certificate, PIECE.upstream, PIECE.peerStates, PIECE.shard];

/** What a keeper has met; counters, for metrics. */
export interface KeeperCounts {
  /** Times that NGINX or a worker of it held something else than it was given. */
  drifts: number;
  /** Times that NGINX did not answer. */
  outages: number;
  /** Times that a worker did not acknowledge a batch in time. */
  lateWorkers: number;
  /** Times that the journal could not be written. */
  journalErrors: number;
  batches: number;
}

export interface KeeperParts {
  client: ControlClient;
  journal: Journal;
  logger: Logger;
  /** The piece of the states of an upstream's peers as they are now. They stand in no journal: they would be stale. */
  peerStates(upstream: string): Piece;
}

/**
 * Keeps the state of an NGINX as it was accepted: delivers what changes in batches, waits for an NGINX that is away, and after
 * its return, or where it has drifted, ships what differs and nothing else. Calls must not overlap.
 */
export class StateKeeper {
  readonly counts: KeeperCounts = { drifts: 0, outages: 0, lateWorkers: 0, journalErrors: 0, batches: 0 };
  /** What NGINX said last; undefined while it does not answer. */
  summary: StateSummary | undefined;
  private readonly accepted = new DigestIndex();
  private generation: string | undefined;
  /** Number of the last batch, and its NGINX. */
  private seq = 0;
  private master = 0;
  private stopped = false;
  private wake: (() => void) | undefined;

  constructor(private readonly parts: KeeperParts) {}

  /** Takes over what an NGINX holds, without changing it. Rejects where it does not answer. */
  async adopt(): Promise<void> {
    const { pieces, ...summary } = await this.parts.client.pieces();
    for (const [name, digest] of Object.entries(pieces)) if (isOurs(name)) this.accepted.set(name, digest);
    this.see(summary);
    this.generation = summary.generation;
  }

  /** True if all workers hold what was accepted, as far as NGINX has told. */
  get inStep(): boolean {
    const workers = this.summary?.workers ?? [];
    return workers.length > 0 && workers.every(({ sum }) => sum === this.accepted.sum);
  }

  /** Checksum of what NGINX has accepted, as it and its workers show it. */
  get sum(): string {
    return this.accepted.sum;
  }

  /** Names of the pieces that NGINX has accepted. */
  names(): string[] {
    return [...this.accepted.names()];
  }

  /**
   * Delivers pieces, in their order, and resolves with those that were refused once all workers have the rest. Pieces that
   * NGINX has already are left out. While NGINX is away this waits for it; it rejects only once the keeper is stopped.
   */
  async deliver(pieces: readonly Piece[], generation?: string): Promise<RefusedPiece[]> {
    const known = pieces.filter((piece) => this.digest(piece) === piece.digest);
    await this.keep(known);
    const chunks = split(pieces.filter((piece) => this.digest(piece) !== piece.digest));
    if (chunks.length === 0 && generation !== undefined && generation !== this.generation) chunks.push([]);
    const refused: RefusedPiece[] = [];
    for (const [i, chunk] of chunks.entries()) {
      const last = i === chunks.length - 1;
      refused.push(...(await this.deliverBatch(chunk, last ? generation : undefined)));
    }
    if (generation !== undefined) this.generation = generation;
    return refused;
  }

  /** Compares what NGINX and its workers hold with what was accepted, and repairs what differs. Rejects where it does not answer. */
  async check(): Promise<void> {
    const summary = await this.parts.client.state();
    const restarted = summary.seq < this.seq || (this.master !== 0 && summary.master !== this.master);
    this.see(summary);
    if (summary.sum !== this.accepted.sum || summary.count !== this.accepted.count) {
      if (!restarted) this.drifted("nginx holds another state than it was given", {});
      await this.repair();
    }
    const astray = (this.summary ?? summary).workers.filter(({ sum }) => sum !== this.accepted.sum);
    if (astray.length === 0) return;
    if (!restarted) this.drifted("workers hold another state than nginx", { workers: astray.map(({ id }) => id) });
    this.took(await this.parts.client.post([], { everything: true }));
  }

  /** Ends waiting; calls that wait reject. */
  stop(): void {
    this.stopped = true;
    this.wake?.();
  }

  private async deliverBatch(batch: readonly Piece[], generation: string | undefined): Promise<RefusedPiece[]> {
    for (let wait = FIRST_WAIT; ; wait = Math.min(LONGEST_WAIT, wait * 2)) {
      try {
        if (this.summary === undefined) await this.check();
        return await this.send(batch, generation);
      } catch (error) {
        if (error instanceof ControlError && error.refusal !== undefined) {
          const { refusal: code, message } = error;
          return batch.map(({ kind, key }) => ({ kind, key, code, message }));
        }
        this.lost(error);
        await this.sleep(wait);
        if (this.stopped) throw error;
      }
    }
  }

  private async send(batch: readonly Piece[], generation: string | undefined): Promise<RefusedPiece[]> {
    const answer = await this.parts.client.post(batch, { generation });
    this.took(answer);
    const refused = new Set(answer.failures.map(pieceName));
    const taken = batch.filter((piece) => !refused.has(pieceName(piece)));
    for (const piece of taken) this.accept(piece);
    await this.keep(taken);
    return answer.failures;
  }

  /** Ships what differs from what was accepted, and takes away what was not. */
  private async repair(): Promise<void> {
    const { pieces } = await this.parts.client.pieces();
    const wrong: Piece[] = [];
    for (const name of this.names()) {
      if (pieces[name] === this.accepted.get(name)) continue;
      const piece = await this.content(name);
      if (piece !== undefined) wrong.push(piece);
      // Nobody can tell any more what it was; who knows it delivers it again.
      this.accepted.set(name, piece === undefined ? pieces[name] : piece.digest);
    }
    for (const name of Object.keys(pieces)) {
      if (!isOurs(name) || this.accepted.get(name) !== undefined) continue;
      const { kind, key } = parsePieceName(name);
      wrong.push(makePiece(kind, key, undefined));
    }
    const chunks = split(inOrder(wrong));
    for (const [i, chunk] of chunks.entries()) {
      const answer = await this.parts.client.post(chunk, i < chunks.length - 1 ? {} : { generation: this.generation });
      this.took(answer);
      for (const failure of answer.failures) {
        this.parts.logger.error("nginx refused a piece that it had accepted before", { ...failure });
        const name = pieceName(failure);
        this.accepted.set(name, pieces[name]);
      }
    }
    this.parts.logger.info("nginx was brought back to the full state", { pieces: wrong.length });
  }

  /** A piece as it was accepted; undefined where it can't be had. */
  private async content(name: string): Promise<Piece | undefined> {
    const { kind, key } = parsePieceName(name);
    if (kind === PIECE.peerStates) {
      const piece = this.parts.peerStates(key);
      return piece.content === undefined ? undefined : piece;
    }
    const piece = await this.parts.journal.read(name).catch(() => undefined);
    return piece?.digest === this.accepted.get(name) ? piece : undefined;
  }

  private digest(piece: Piece): string {
    return this.accepted.get(pieceName(piece)) ?? NO_DIGEST;
  }

  private accept(piece: Piece): void {
    this.accepted.set(pieceName(piece), piece.content === undefined ? undefined : piece.digest);
  }

  /** Writes pieces to the journal; where that can't be done it is told of and counted. */
  async keep(pieces: readonly Piece[]): Promise<void> {
    try {
      await this.parts.journal.append(pieces.filter(({ kind }) => kind !== PIECE.peerStates));
    } catch (error) {
      this.counts.journalErrors++;
      this.parts.logger.error("the journal could not be written; nginx would start with an older state", { error });
    }
  }

  private took(answer: BatchAnswer): void {
    this.counts.batches++;
    this.see(answer);
    if (answer.late.length === 0) return;
    this.counts.lateWorkers += answer.late.length;
    this.parts.logger.warn("workers have not acknowledged a change in time", { workers: answer.late, seq: answer.seq });
  }

  private see(summary: StateSummary): void {
    if (this.master !== 0 && summary.master !== this.master) this.parts.logger.info("nginx has been started anew");
    this.summary = summary;
    this.seq = summary.seq;
    this.master = summary.master;
  }

  private drifted(message: string, fields: Record<string, unknown>): void {
    this.counts.drifts++;
    this.parts.logger.warn(message, fields);
  }

  /** NGINX does not answer. */
  lost(error: unknown): void {
    if (this.summary === undefined || this.stopped) return;
    this.summary = undefined;
    this.counts.outages++;
    this.parts.logger.warn("nginx does not answer; changes wait until it does", { error });
  }

  private async sleep(milliseconds: number): Promise<void> {
    if (this.stopped) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Kinds that others hand in beside the controller are left alone. */
function isOurs(name: string): boolean {
  return ORDER.includes(parsePieceName(name).kind);
}

function inOrder(pieces: readonly Piece[]): Piece[] {
  const place = ({ kind, content }: Piece) =>
    content === undefined ? 1 - ORDER.indexOf(kind) + 2 * ORDER.length : ORDER.indexOf(kind);
  return [...pieces].sort((a, b) => place(a) - place(b));
}

function split(pieces: readonly Piece[]): Piece[][] {
  const chunks: Piece[][] = [];
  let chunk: Piece[] = [];
  let size = 0;
  for (const piece of pieces) {
    const bytes = piece.content?.length ?? 0;
    if (chunk.length === MOST_PIECES || (chunk.length > 0 && size + bytes > MOST_BYTES)) {
      chunks.push(chunk);
      chunk = [];
      size = 0;
    }
    chunk.push(piece);
    size += bytes;
  }
  if (chunk.length > 0) chunks.push(chunk);
  return chunks;
}
