import type { HealthCheck } from "../model/types.js";

/** One thing that is probed, for every peer that asks the same of the same address. */
export interface Target {
  /** Says all that the probe does: targets with one key are one. */
  readonly key: string;
  readonly address: string;
  readonly port: number;
  readonly check: HealthCheck;
  /** Slots of the tracker that its results count for. */
  readonly slots: Set<number>;
  /** When it is to be probed next. */
  due: number;
  /** Its place in the schedule; -1 while it is not there. */
  place: number;
  underWay: boolean;
}

/** What a probe found, and what it saw: of our own words, for people. */
export interface Outcome {
  passed: boolean;
  reason: string;
}

/** What checks do, by check: an upstream of thousands of peers has one check. */
const probeTexts = new WeakMap<HealthCheck, string>();

export function targetKey(address: string, port: number, check: HealthCheck): string {
  let text = probeTexts.get(check);
  if (text === undefined) {
    // These judge results; they make no other probe.
    const { fails: _fails, passes: _passes, persistent: _persistent, ...probe } = check;
    text = JSON.stringify(Object.entries(probe).sort(([a], [b]) => (a < b ? -1 : 1)));
    probeTexts.set(check, text);
  }
  return `${address} ${check.port ?? port} ${text}`;
}

export function newTarget(key: string, address: string, port: number, check: HealthCheck): Target {
  return {
    key,
    address,
    port: check.port ?? port,
    check,
    slots: new Set(),
    due: 0,
    place: -1,
    underWay: false,
  };
}

/**
 * When a target is probed first, from 0 to 1 of its interval: a hash of its key, so that probes are spread evenly over
 * the interval, and a restart does not bunch them. FNV-1a, with a final mix because keys differ in few characters.
 */
export function phaseOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
