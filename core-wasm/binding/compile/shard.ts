/** Compiles the rules of one host pattern into a shard's image. Layout: core-wasm/assembly/image/layout.ts. */
import {
  GUARD_SIZE,
  MAX_HOST,
  MAX_ROUTES,
  NAME_RESOURCE_SIZE,
  NAME_ROUTE_SIZE,
  NONE,
  PATTERN_ANY_HOST,
  pad8,
  R_MATCH_COUNT,
  R_MATCHES,
  R_NEED,
  R_NEXT,
  R_OUTCOME,
  R_PATH,
  R_PATH_LENGTH,
  R_REGEX,
  R_REGEX_LENGTH,
  ROUTE_SIZE,
  S_COOKIE,
  S_FIRST_PREFIX,
  S_FIRST_REGEX,
  S_GUARD_COUNT,
  S_GUARDS,
  S_HEADER_COUNT,
  S_HEADER_SIZE,
  S_HEADERS,
  S_HOST_LENGTH,
  S_MATCH,
  S_NAMES,
  S_PATTERN,
  S_ROUTE_COUNT,
  S_ROUTES,
  S_SCRATCH,
  S_SIZE,
  S_UNMATCHED,
  S_UNMATCHED_NEED,
  S_UPSTREAM_COUNT,
  S_UPSTREAMS,
  S_VERSION,
  SHARD_MAGIC,
  SHARD_VERSION,
} from "../../assembly/image/layout.js";
import type { HostRules, Route } from "../source.js";
import type { ImageWriter } from "./image-writer.js";
import { patternParts } from "./numbers.js";
import { RouteList } from "./route-list.js";
import { putMatch, putMatches, putOutcome } from "./rules.js";
import { type RegexCompiler, ShardCompilation } from "./shard-compilation.js";
import { TrieWriter } from "./trie.js";

/**
 * The compiler of shards. It is pure: the same rules give the same bytes, whatever was compiled before. Its buffers are
 * used again and again.
 */
export class ShardCompiler {
  readonly #c: ShardCompilation;
  readonly #out: ImageWriter;
  readonly #routes = new RouteList();
  readonly #trie: TrieWriter;
  /** Index of the resource of each route, in the order of the image. */
  #owners: number[] = [];

  constructor(compileRegex: RegexCompiler) {
    this.#c = new ShardCompilation(compileRegex);
    this.#out = this.#c.out;
    this.#trie = new TrieWriter(this.#out, this.#routes);
  }

  /**
   * The image of rules, complete but for its checksum, which the core writes. Valid until the next call.
   *
   * Throws CoreError that names the host and the path: CORE_SOURCE_INVALID for what the format can't hold (a broken
   * regex, a path without a slash, a part without a name, a split without weight), CORE_LIMIT for what is too large.
   */
  compile(rules: HostRules): Uint8Array {
    const { guards, routes, unmatched } = rules;
    const c = this.#c;
    const out = this.#out;
    const { kind, host } = patternParts(rules.pattern);
    c.begin(host);
    if (guards.length >= MAX_ROUTES) throw c.beyond(`${guards.length} guards, at most ${MAX_ROUTES - 1}`);
    if (routes.length >= MAX_ROUTES) throw c.beyond(`${routes.length} routes, at most ${MAX_ROUTES - 1}`);
    this.#putHeader(kind, host);
    this.#routes.read(c, routes);
    out.patch(S_MATCH, out.length);
    this.#trie.put();

    const records = out.reserve(routes.length * ROUTE_SIZE);
    const guardRecords = out.reserve(guards.length * GUARD_SIZE);
    out.patch(S_ROUTE_COUNT, routes.length);
    out.patch(S_ROUTES, records);
    out.patch(S_FIRST_REGEX, this.#routes.firstRegex);
    out.patch(S_FIRST_PREFIX, this.#routes.firstPrefix);
    out.patch(S_GUARD_COUNT, guards.length);
    out.patch(S_GUARDS, guardRecords);
    c.path = undefined;
    for (let i = 0; i < guards.length; i++) this.#putGuard(guardRecords + i * GUARD_SIZE, guards[i]);
    const { inOrder } = this.#routes;
    for (let i = 0; i < routes.length; i++) {
      const route = inOrder[i];
      this.#owners[i] = c.resources.add(routes[route].resource);
      this.#putRoute(records + i * ROUTE_SIZE, routes[route], route);
    }
    c.path = undefined;
    if (unmatched) {
      c.resources.add(unmatched.resource);
      c.clearNeed();
      const outcome = putOutcome(c, unmatched.outcome);
      out.patch(S_UNMATCHED, outcome);
      out.patch(S_UNMATCHED_NEED, c.putNeed());
    }
    this.#putLists();
    this.#putNames(rules);
    out.reserve(pad8(out.length) - out.length);
    out.patch(S_SIZE, out.length);
    return out.written;
  }

  #putHeader(kind: number, host: string): void {
    const out = this.#out;
    out.reserve(S_HEADER_SIZE);
    const length = out.text(host);
    if ((length === 0) !== kind >= PATTERN_ANY_HOST) throw this.#c.invalid("a pattern without a host");
    if (length > MAX_HOST) throw this.#c.beyond(`a host of more than ${MAX_HOST} bytes`);
    // At least one byte of padding, up to a whole word, lets hosts be compared eight bytes at a time.
    out.reserve(S_HEADER_SIZE + pad8(length + 1) - out.length);
    out.patch(0, SHARD_MAGIC);
    out.patch(S_VERSION, SHARD_VERSION);
    out.patch(S_PATTERN, kind);
    out.patch(S_HOST_LENGTH, length);
  }

  #putGuard(record: number, { resource, match }: HostRules["guards"][number]): void {
    const c = this.#c;
    c.resources.add(resource);
    c.clearNeed();
    putMatch(c, record + 4, match);
    this.#out.patch(record, c.putNeed());
  }

  /** Writes what belongs to one route, and its record: path, regex, matches, outcome, need list. */
  #putRoute(record: number, { path, label, matches, outcome }: Route, route: number): void {
    const c = this.#c;
    const out = this.#out;
    const { kinds, flags, nexts, starts, lengths, texts } = this.#routes;
    const length = lengths[route];
    c.path = label;
    c.clearNeed();
    out.patch(record, kinds[route] | (flags[route] << 8));
    out.patch(record + R_NEXT, nexts[route]);
    out.patch(record + R_PATH, out.length);
    out.patch(record + R_PATH_LENGTH, length);
    out.copy(texts, starts[route], length);
    if (path.kind === "regex") {
      out.patch(record + R_REGEX, out.length);
      const size = c.putRegex(path.pattern, flags[route]);
      out.patch(record + R_REGEX_LENGTH, size);
    }
    out.patch(record + R_MATCH_COUNT, matches.length);
    const start = putMatches(c, matches);
    out.patch(record + R_MATCHES, start);
    if (outcome) {
      const offset = putOutcome(c, outcome);
      out.patch(record + R_OUTCOME, offset);
    }
    const need = c.putNeed();
    out.patch(record + R_NEED, need);
  }

  #putLists(): void {
    const c = this.#c;
    const out = this.#out;
    out.patch(S_UPSTREAM_COUNT, c.upstreams.count);
    out.patch(S_UPSTREAMS, out.length);
    c.upstreams.put(out);
    out.patch(S_HEADER_COUNT, c.headers.count);
    out.patch(S_HEADERS, out.length);
    c.headers.put(out);
    out.patch(S_COOKIE, c.cookieSlot);
    out.patch(S_SCRATCH, c.scratch);
  }

  /** Writes the names: who owns each rule, and how its object spells the path. */
  #putNames({ guards, routes, unmatched }: HostRules): void {
    const c = this.#c;
    const out = this.#out;
    const { inOrder, starts, lengths, whole } = this.#routes;
    out.patch(S_NAMES, out.length);
    out.put(c.resources.count);
    const resourceTable = out.reserve(c.resources.count * NAME_RESOURCE_SIZE);
    const routeTable = out.reserve(routes.length * NAME_ROUTE_SIZE);
    for (const { resource } of guards) out.put(c.resources.add(resource));
    out.put(unmatched ? c.resources.add(unmatched.resource) : NONE);
    c.resources.putAt(out, resourceTable);
    for (let i = 0; i < routes.length; i++) {
      const field = routeTable + i * NAME_ROUTE_SIZE;
      const route = inOrder[i];
      const { label, path } = routes[route];
      out.patch(field, this.#owners[i]);
      // Most labels are their path, whose bytes are at hand.
      if (whole[route] && label === (path.kind === "regex" ? path.pattern : path.path)) {
        out.patch(field + 4, out.length);
        out.patch(field + 8, lengths[route]);
        out.copy(this.#routes.texts, starts[route], lengths[route]);
      } else {
        out.textAt(field + 4, label);
      }
    }
  }
}
