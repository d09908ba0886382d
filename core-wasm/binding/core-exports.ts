import type { PeerSetExports } from "./peer-set.js";
import type { RegexExports } from "./regex.js";

/** The exports of core.wasm. All numbers are 32-bit integers; ABI.md describes each. */
export interface CoreExports extends PeerSetExports, RegexExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  abi_version(): number;
  alloc(size: number): number;
  free(pointer: number): number;
  memory_used(): number;
  table_new(): number;
  table_free(table: number): number;
  context_new(table: number, input: number, output: number): number;
  context_free(context: number): number;
  context_trace(context: number, on: number): number;
  shard_validate(image: number, length: number, seal?: number): number;
  shard_load(table: number, image: number, length: number, seal?: number): number;
  shard_remove(table: number, pattern: number, host: number, length: number): number;
  peers_load(table: number, image: number, length: number): number;
  peers_remove(table: number, key: number, length: number): number;
  peers_find(table: number, key: number, length: number): number;
  route(context: number, hostLength: number, targetLength: number, flags: number, random: number): number;
  resume(context: number): number;
  release_decision(context: number): number;
  peer_pick(
    context: number,
    key: number,
    length: number,
    hashed: number,
    hash: number,
    tried: number,
    count: number,
    random: number,
  ): number;
  peer_done(context: number, token: number, failed: number): number;
  peer_state(table: number, token: number, state: number, now: number): number;
  peer_status(context: number, token: number): number;
  render_setting(context: number, index: number): number;
  health_new(slots: number, old: number): number;
  health_set(tracker: number, slot: number, rule: number, slowStart: number, state: number, since: number): number;
  health_state(tracker: number, slot: number): number;
  health_report(tracker: number, results: number, count: number, now: number, out: number): number;
}
