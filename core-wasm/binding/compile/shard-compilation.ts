import { MAX_HEADERS } from "../../assembly/image/layout.js";
import type { RegexProblem } from "../errors.js";
import { Compilation } from "./compilation.js";
import { TextList } from "./text-list.js";

/** Compiles a pattern to its image; `scratch` is what the core needs to run it. Flags are those of a regex route. */
export type RegexCompiler = (pattern: string, flags: number) => { image: Uint8Array; scratch: number } | RegexProblem;

/** The image of a shard in the making. */
export class ShardCompilation extends Compilation {
  readonly upstreams = new TextList(this.store);
  readonly resources = new TextList(this.store);
  /** The most scratch that one of its regexes needs. */
  scratch = 0;
  readonly #compileRegex: RegexCompiler;

  constructor(compileRegex: RegexCompiler) {
    super("rules of host", MAX_HEADERS);
    this.#compileRegex = compileRegex;
  }

  override begin(host: string): void {
    super.begin(host);
    this.upstreams.reset();
    this.resources.reset();
    this.scratch = 0;
  }

  /** Appends the image of a pattern; returns its length. */
  putRegex(pattern: string, flags: number): number {
    const compiled = this.#compileRegex(pattern, flags);
    if ("position" in compiled) {
      throw this.invalid(`a regex does not compile at byte ${compiled.position}: ${compiled.message}`);
    }
    if (compiled.scratch > this.scratch) this.scratch = compiled.scratch;
    this.out.append(compiled.image);
    return compiled.image.length;
  }
}
