import type { Logger } from "../../observability/logger.js";
import type { ControlClient, StateSummary } from "./control-client.js";
import type { Journal } from "./journal.js";
import { KEPT_KINDS, makePiece, type Piece, parsePieceName, pieceName } from "./piece.js";

/** All workers take over what is put back at once, so it goes in slices; some milliseconds of each. */
const SLICE = 32;

export interface PostedPiecesParts {
  client: Pick<ControlClient, "kept" | "putBack">;
  journal: Journal;
  logger: Logger;
  /** Writes pieces to the journal; never rejects. */
  keep(pieces: readonly Piece[]): Promise<void>;
}

/**
 * Has what scripts post to NGINX outlive it: reads it back into the journal, from which NGINX takes it at its start, and puts it
 * back into an NGINX that has started without it. What was posted to an NGINX is always newer than what the journal has.
 */
export class PostedPieces {
  /** When the state of NGINX began that was looked at last, and how many posts it had. */
  private since: number | undefined;
  private posts = 0;

  constructor(private readonly parts: PostedPiecesParts) {}

  /** Follows what NGINX has said of itself. Rejects where it does not answer. Calls must not overlap. */
  async follow({ since, posts }: Pick<StateSummary, "since" | "posts">): Promise<void> {
    if (since === this.since && posts === this.posts) return;
    const found = await this.parts.client.kept();
    if (found !== undefined) await this.take(found, posts === 0);
    this.since = since;
    this.posts = posts;
  }

  private async take(found: readonly Piece[], untouched: boolean): Promise<void> {
    const there = new Map(found.map((piece) => [pieceName(piece), piece.digest]));
    const { journal, keep } = this.parts;
    const names = journal.names().filter((name) => KEPT_KINDS.includes(parsePieceName(name).kind));
    const missing = names.filter((name) => there.get(name) !== journal.digest(name));
    // Somebody posts meanwhile: the next look finds it.
    if (untouched && missing.length > 0 && !(await this.putBack(missing))) return;
    const gone = untouched ? [] : names.filter((name) => !there.has(name));
    const removals = gone.map(parsePieceName).map(({ kind, key }) => makePiece(kind, key, undefined));
    const kept = untouched ? found.filter((piece) => journal.digest(pieceName(piece)) === undefined) : found;
    await keep([...removals, ...kept]);
  }

  /** False where NGINX has newer ones. What it refuses is of no use any more, and leaves the journal. */
  private async putBack(names: readonly string[]): Promise<boolean> {
    const { client, journal, keep, logger } = this.parts;
    let count = 0;
    for (let i = 0; i < names.length; i += SLICE) {
      const read = names.slice(i, i + SLICE).map((name) => journal.read(name).catch(() => undefined));
      const pieces = (await Promise.all(read)).filter((piece) => piece !== undefined);
      const refused = await client.putBack(pieces);
      if (refused === undefined) return false;
      for (const failure of refused) logger.warn("nginx refused what was posted to it before", { ...failure });
      await keep(refused.map(({ kind, key }) => makePiece(kind, key, undefined)));
      count += pieces.length - refused.length;
    }
    logger.info("nginx was given back what had been posted to it", { pieces: count });
    return true;
  }
}
