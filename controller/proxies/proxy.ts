import type { PeerState } from "../../core-wasm/binding/source.js";
import type { Plan, PlanStep } from "../reconcile/plan.js";

/** A part of the model that is set and removed by itself. */
export interface Piece {
  kind: "host" | "upstream" | "certificate";
  /** Pattern text, upstream key or certificate host. */
  piece: string;
}

/** A step that a proxy refused; the proxy keeps the last good state of that piece and goes on with the others. */
export interface ApplyFailure extends Piece {
  code: string;
  message: string;
  /** The piece is in force, though the proxy does not do all that it asks for. */
  inForce?: true;
}

/** What active checks say of a peer of an upstream (its key). */
export interface PeerStateChange {
  upstream: string;
  address: string;
  port: number;
  state: PeerState;
}

/** What came of a plan. */
export interface Applied {
  /** In force for new requests. */
  generation: string;
  failures: ApplyFailure[];
  /** Steps of earlier plans that were refused for lack of room and tried again with this one: in force, or among the failures. */
  retried?: readonly PlanStep[];
}

/** A running proxy that is kept in step with the model. */
export interface Proxy {
  /** Applies a plan; resolves when what it took is in force. */
  apply(plan: Plan): Promise<Applied>;
  /**
   * Everything that there is at the start was applied: what the proxy holds besides, from before, goes. Only for a proxy that
   * outlives its controller.
   */
  complete?(): Promise<void>;
  /**
   * Takes in what active checks have found out, for new requests. Idempotent. A state is kept, whether its peer is there yet
   * or not, until another one comes; `unchecked` forgets it.
   */
  setPeerStates(states: readonly PeerStateChange[]): void;
  /** The generation in force, and whether the proxy serves. */
  state(): { generation: string; serving: boolean };
  /** Stops taking new requests, lets those under way end (at most `graceMs`), then stops. */
  close(graceMs: number): Promise<void>;
}
