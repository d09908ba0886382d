/** What the double has of the static configuration of the carrier locations. */
import { questionMap } from "../../controller/proxies/opennjet/locations/questions.js";
import { QUESTIONS } from "./carrier-over.js";

/** Declarative modules that it loads. With more of them workers lose deletes sooner. */
export const CONFIGURED_MODULES = ["http_dyn_map", "http_vts"];

export function doubleMap(keyTo: string, keyFrom: string, values: Record<string, string>) {
  const entries = Object.entries(values).map(([valueFrom, valueTo]) => ({ valueFrom, valueTo }));
  return { keyFrom, keyTo, values: entries };
}

const { variable, source, values } = questionMap(QUESTIONS);

/** By which questions are known. */
export const QUESTION_MAP = doubleMap(variable, source, Object.fromEntries(values));
