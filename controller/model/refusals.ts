import type { HostRules } from "../../core-wasm/binding/source.js";
import { isProblemCode } from "../errors.js";
import type { ApplyFailure, Piece } from "../proxies/proxy.js";
import type { PlanStep } from "../reconcile/plan.js";
import { type Problem, plain, quote } from "../resources/problem.js";
import { pieceKey, pieceOf } from "./pieces.js";

/** Why a piece was refused, as a problem of whoever it belongs to. */
export type RefusedPiece = Pick<Problem, "code" | "message">;

/** The objects (`Kind/namespace/name`) that use the certificate of a host. */
export type CertificateUsers = (host: string) => Iterable<string>;

/**
 * The pieces of the model that the proxy has refused and not taken since: there its last good state is in force, or
 * nothing at all. A piece is tried again by the next plan that has a step for it, or by the proxy itself, which says so.
 */
export class Refusals {
  readonly #refused = new Map<string, { reason: RefusedPiece; objects: Set<string> }>();

  /** Takes in what became of these steps, and returns the objects of which something was refused or healed. */
  settle(steps: readonly PlanStep[], failures: readonly ApplyFailure[], users: CertificateUsers): Set<string> {
    const touched = new Set<string>();
    // The usual case: nothing is wrong, and nothing was.
    if (failures.length === 0 && this.empty) return touched;
    const failed = new Map(failures.map((failure) => [pieceKey(failure), failure]));
    for (const step of steps) {
      const key = pieceKey(pieceOf(step));
      for (const object of this.#refused.get(key)?.objects ?? []) touched.add(object);
      this.#refused.delete(key);
      const failure = failed.get(key);
      if (failure === undefined) continue;
      const objects = new Set(objectsOf(step, users));
      for (const object of objects) touched.add(object);
      this.#refused.set(key, { reason: reasonOf(failure), objects });
    }
    return touched;
  }

  get empty(): boolean {
    return this.#refused.size === 0;
  }

  /** Undefined if the proxy has the piece as the model has it. */
  of(piece: Piece): RefusedPiece | undefined {
    return this.#refused.get(pieceKey(piece))?.reason;
  }
}

/** Whose piece it is that a step sets; a removal is nobody's any more. */
function objectsOf(step: PlanStep, users: CertificateUsers): Iterable<string> {
  if (step.step === "set-host") return resourcesOf(step.rules);
  if (step.step === "set-upstream") return [ownerOf(step.upstream.peers.key)];
  return step.step === "set-certificate" ? users(step.certificate.host) : [];
}

function* resourcesOf({ guards, routes, unmatched }: HostRules): Iterable<string> {
  for (const { resource } of guards) yield resource;
  for (const { resource } of routes) yield resource;
  if (unmatched !== undefined) yield unmatched.resource;
}

/** The object of an upstream key, `kind/namespace/object/name`. */
function ownerOf(key: string): string {
  return key.split("/").slice(0, 3).join("/");
}

function reasonOf({ kind, piece, code, message, inForce }: ApplyFailure): RefusedPiece {
  const name = kind === "upstream" ? piece.split("/").slice(3).join("/") : piece;
  const what = { host: "the rules of", upstream: "the upstream", certificate: "the certificate of" }[kind];
  const did = inForce ? "has" : "refuses";
  const now = inForce ? "not as it asks for" : "keeps what it had";
  const says = `the proxy ${did} ${what} ${quote(name)} ${inForce ? "but" : "and"} ${now}: ${plain(message)}`;
  return { code: isProblemCode(code) ? code : "PROXY_STEP_FAILED", message: says };
}
