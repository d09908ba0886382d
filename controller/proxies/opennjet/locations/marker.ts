/**
 * A location that tells which set of locations a worker was told to have: its id is the digest of the set. Workers take changes in turn,
 * and the marker is added last, after all removals: who has it has got, or lost, all before it.
 */
import type { HostPattern } from "../../../../core-wasm/binding/source.js";
import { all, conditionText, equalTo } from "./expression.js";
import type { CarriedLocation } from "./location-set.js";
import { answerLine, asksFor, digestOf, questionOf } from "./questions.js";

/** Nobody can have a host of this domain (RFC 2606). No rule takes its requests. */
const HOST = "njet-kic.invalid";
export const MARKER_HOST: HostPattern & { kind: "exact" } = { kind: "exact", host: HOST };
const BEGINS = `($host = ${HOST} && `;

/** The marker of a set of locations, whatever their order. `folder`: see questionFolder. */
export function markerOf(names: readonly string[], folder: string): CarriedLocation {
  const id = digestOf(JSON.stringify([...names].sort()));
  return {
    rule: "",
    name: conditionText(all(equalTo("host", HOST), asksFor(id))),
    body: answerLine(folder),
    question: questionOf(MARKER_HOST, id, folder),
  };
}

export function isMarker({ name }: Pick<CarriedLocation, "name">): boolean {
  return name.startsWith(BEGINS);
}
