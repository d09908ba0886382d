import type { RouteTable } from "../../../core-wasm/binding/route-table.js";
import { patternText } from "../../../core-wasm/binding/source.js";
import type { Certificate, Upstream } from "../../model/types.js";
import type { PlanStep } from "../../reconcile/plan.js";
import type { PeerStateChange } from "../proxy.js";
import { makePiece, PIECE, type Piece } from "./piece.js";

/** Makes images; nothing is loaded. */
export type ImageCompiler = Pick<RouteTable, "compileHost" | "compilePeers">;

/** The piece that a step of a plan sets or takes away. Throws CoreError for rules or peers that do not compile. */
export function pieceOfStep(step: PlanStep, compiler: ImageCompiler): Piece {
  switch (step.step) {
    case "set-certificate":
      return certificatePiece(step.certificate);
    case "remove-certificate":
      return makePiece(PIECE.certificate, step.host, undefined);
    case "set-upstream":
      return makePiece(PIECE.upstream, step.upstream.peers.key, upstreamContent(step.upstream, compiler));
    case "remove-upstream":
      return makePiece(PIECE.upstream, step.key, undefined);
    case "set-host":
      return makePiece(PIECE.shard, patternText(step.rules.pattern), compiler.compileHost(step.rules));
    case "remove-host":
      return makePiece(PIECE.shard, patternText(step.pattern), undefined);
  }
}

/** JSON {chain, key}, both PEM. The host "" is for handshakes that no other certificate fits. */
export function certificatePiece({ host, chain, key }: Pick<Certificate, "host" | "chain" | "key">): Piece {
  return makePiece(PIECE.certificate, host, Buffer.from(JSON.stringify({ chain, key })));
}

/** JSON [{address, port, state}] of all peers of an upstream that checks know something about, in one order. */
export function peerStatesPiece(upstream: string, states: readonly PeerStateChange[]): Piece {
  if (states.length === 0) return makePiece(PIECE.peerStates, upstream, undefined);
  const list = states
    .map(({ address, port, state }) => ({ address, port, state }))
    .sort((a, b) => (a.address < b.address ? -1 : a.address > b.address ? 1 : a.port - b.port));
  return makePiece(PIECE.peerStates, upstream, Buffer.from(JSON.stringify(list)));
}

/** u32 length of the image of the peers, the image, then JSON {transport, sessionCookie, queue, display}. */
function upstreamContent({ peers, transport, sessionCookie, queue }: Upstream, compiler: ImageCompiler): Uint8Array {
  const image = compiler.compilePeers(peers);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(image.length);
  const rest = JSON.stringify({ transport, sessionCookie, queue, display: peers.display });
  return Buffer.concat([length, image, Buffer.from(rest)]);
}
