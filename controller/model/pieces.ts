import { patternText } from "../../core-wasm/binding/source.js";
import type { Piece } from "../proxies/proxy.js";
import type { PlanStep } from "../reconcile/plan.js";

/** What a step is about: pieces are set and removed each by itself, and these names are unique among their kind. */
export function pieceOf(step: PlanStep): Piece {
  switch (step.step) {
    case "set-certificate":
      return { kind: "certificate", piece: step.certificate.host };
    case "remove-certificate":
      return { kind: "certificate", piece: step.host };
    case "set-upstream":
      return { kind: "upstream", piece: step.upstream.peers.key };
    case "remove-upstream":
      return { kind: "upstream", piece: step.key };
    case "set-host":
      return { kind: "host", piece: patternText(step.rules.pattern) };
    case "remove-host":
      return { kind: "host", piece: patternText(step.pattern) };
  }
}

/** A text for each piece, unlike that of any other. */
export function pieceKey({ kind, piece }: Piece): string {
  return `${kind} ${piece}`;
}
