import { isDeepStrictEqual } from "node:util";
import type { ObjectState } from "../model/object-state.js";
import { isRecord } from "./api-object.js";

/** Where clients reach the proxy: an IP address or a host name. */
export type PublishedAddress = { ip: string } | { hostname: string };

/** Longest message; an Event's note must stay under 1 kB, and nobody reads more. */
const MAX_MESSAGE = 900;

/** What became of an object, in one text. */
export function messageOf(state: ObjectState): string {
  const { namespace, name } = state.ref;
  if (state.problems.length === 0) return `Configuration for ${namespace}/${name} was added or updated`;
  const problems = state.problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const text = problems.join("; ");
  return text.length > MAX_MESSAGE ? `${text.slice(0, MAX_MESSAGE)}...` : text;
}

/** Status of an Ingress (IngressStatus). */
export function ingressStatus(addresses: readonly PublishedAddress[]): Record<string, unknown> {
  return { loadBalancer: { ingress: addresses } };
}

export interface CustomStatusInput {
  state: ObjectState;
  /** Generation of the object that `state` tells of. */
  generation: number;
  addresses: readonly PublishedAddress[];
  /** `namespace/name` of the VirtualServer; undefined for kinds that have none. */
  referencedBy?: string;
  /** The status that the object has now. */
  before: unknown;
  /** Milliseconds since 1970. */
  wallClock: number;
}

/**
 * Status of a VirtualServer or VirtualServerRoute. The condition `Ready` is True while at least a part of the object is
 * served, and the proxy has refused nothing of it; its lastTransitionTime moves only when that changes (Kubernetes API conventions, "Typical status properties").
 */
export function customStatus(input: CustomStatusInput): Record<string, unknown> {
  const { state, generation, addresses, referencedBy, before } = input;
  const message = messageOf(state);
  const served = state.state === "Valid" || (state.state === "Warning" && !UNSERVED.includes(state.reason));
  const status = served && state.reason !== "AddedOrUpdatedWithError" ? "True" : "False";
  const known = isRecord(before) && Array.isArray(before.conditions) ? before.conditions.filter(isRecord) : [];
  const old = known.find((condition) => condition.type === "Ready");
  const sameTime = old?.status === status && typeof old.lastTransitionTime === "string";
  const lastTransitionTime = sameTime
    ? old.lastTransitionTime
    : new Date(input.wallClock).toISOString().replace(/\.\d+Z$/, "Z");
  return {
    state: state.state,
    reason: state.reason,
    message,
    observedGeneration: generation,
    externalEndpoints: served ? addresses.map((address) => ({ ...address, ports: "[80,443]" })) : [],
    ...(state.ref.kind === "VirtualServerRoute" ? { referencedBy: referencedBy ?? "" } : {}),
    conditions: [
      ...known.filter((condition) => condition.type !== "Ready"),
      { type: "Ready", status, observedGeneration: generation, lastTransitionTime, reason: state.reason, message },
    ],
  };
}

/** Reasons with which nothing of an object is served. */
const UNSERVED: readonly string[] = ["Rejected", "NoVirtualServerFound", "Ignored"];

/** The fields of `wanted` that `before` has otherwise; undefined if there are none. */
export function difference(before: unknown, wanted: Record<string, unknown>): Record<string, unknown> | undefined {
  const old = isRecord(before) ? before : {};
  const changed = Object.entries(wanted).filter(([field, value]) => !isDeepStrictEqual(old[field], value));
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
}
