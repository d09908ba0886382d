/**
 * A location that tells which set of locations a worker has: its path is the digest of the set. OpenNJet has no list of
 * locations, and the answer of its API says only that the agent has taken a change. Workers take changes in turn, and the marker
 * is added last, after all removals: who has it has done all before it.
 */
import { createHash } from "node:crypto";
import type { HostPattern } from "../../../../core-wasm/binding/source.js";
import { quotedText, word } from "./configuration-text.js";
import { directive } from "./directives.js";
import { all, conditionText, equalTo } from "./expression.js";
import type { CarriedLocation } from "./location-set.js";

/** Nobody can have a host of this domain (RFC 2606). No rule takes its requests. */
const HOST = "njet-kic.invalid";
export const MARKER_HOST: HostPattern & { kind: "exact" } = { kind: "exact", host: HOST };
const BEGINS = `($host = ${HOST} && `;

/** The marker of a set of locations, whatever their order. `folder`: of its path; what is asked there stands in no access log. */
export function markerOf(names: readonly string[], folder: string): CarriedLocation {
  const digest = digestOf(JSON.stringify([...names].sort()));
  const path = `/${folder}/${digest}`;
  return {
    rule: "",
    name: conditionText(all(equalTo("host", HOST), equalTo("uri", path))),
    body: `${directive("default_type", quotedText("text/plain"))} ${directive("return", "200", word(`${path} \${pid}`))}`,
  };
}

/** The folder of all markers of one OpenNJet: nobody can name it who does not know the secret. */
export function markerFolder(secret: string): string {
  return digestOf(`markers ${secret}`);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

export function isMarker({ name }: Pick<CarriedLocation, "name">): boolean {
  return name.startsWith(BEGINS);
}

/** The path that a marker answers. */
export function markerPath({ name }: Pick<CarriedLocation, "name">): string {
  return name.slice(`${BEGINS}$uri = `.length, -1);
}

/** The data plane, as a client sees it. */
export interface DataPlane {
  /**
   * Requests with this Host, one after the other, on a connection of their own: any worker may get it, and one worker gets them all.
   * Rejects where nobody answers.
   */
  ask(host: string, paths: readonly string[]): Promise<{ status: number; body: string }[]>;
  /** Worker processes that serve; at least 1. */
  workers(): number;
}

/**
 * The process id of a worker that has the marker, and not the one of before; undefined where the worker that was asked has not.
 * Rejects where nobody answers.
 */
export async function askForMarker(
  plane: DataPlane,
  marker: Pick<CarriedLocation, "name">,
  before?: Pick<CarriedLocation, "name">,
): Promise<string | undefined> {
  const paths = [marker, ...(before === undefined ? [] : [before])].map(markerPath);
  const [pid, old] = (await plane.ask(HOST, paths)).map(({ status, body }, i) => {
    const [path, process] = body.trim().split(" ");
    return status === 200 && path === paths[i] ? process : undefined;
  });
  return old === undefined ? pid : undefined;
}
