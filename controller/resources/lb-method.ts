import type { BalanceMethod } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { quote } from "./problem.js";
import { parseTemplate } from "./template.js";
import { HASH_KEY_VARIABLES } from "./variables.js";

const ROUND_ROBIN: BalanceMethod = { kind: "round-robin" };
const LATER_METHODS = ["least_conn", "ip_hash", "random", "random two least_conn"];
const ALL_METHODS = ["round_robin", ...LATER_METHODS, "hash KEY", "hash KEY consistent", "chash KEY"].join(", ");

/**
 * `lb-method` of an upstream. `chash KEY` is the CRC-32 ring of the ids `ip:port`, `hash KEY consistent` that of NGINX; the
 * methods that do not act yet are served round robin, with a warning.
 */
export function readBalanceMethod(field: Field): BalanceMethod {
  const words = field.line()?.trim().split(/\s+/) ?? ["round_robin"];
  const method = words.join(" ");
  if (method === "round_robin") return ROUND_ROBIN;
  if (LATER_METHODS.includes(method)) return servedRoundRobin(field);
  const [name, key, mode] = words;
  const known = name === "chash" ? words.length === 2 : name === "hash" && isHashForm(words.length, mode);
  if (!known) {
    field.error("LB_METHOD_INVALID", `${quote(method)} is none of ${ALL_METHODS}`);
    return ROUND_ROBIN;
  }
  const template = parseTemplate(key, { variables: HASH_KEY_VARIABLES, bareNames: true }, field);
  if (template === undefined) return ROUND_ROBIN;
  if (template.every((part) => typeof part === "string")) {
    field.error(
      "LB_METHOD_INVALID",
      `the key ${quote(key)} is the same for every request; use a variable such as $uri`,
    );
    return ROUND_ROBIN;
  }
  if (name === "chash") return { kind: "ring", key: template };
  return mode === "consistent" ? { kind: "nginx-ring", key: template } : servedRoundRobin(field);
}

function isHashForm(words: number, mode: string | undefined): boolean {
  return words === 2 || (words === 3 && mode === "consistent");
}

function servedRoundRobin(field: Field): BalanceMethod {
  field.warning("NOT_YET_ACTIVE", "this method does not act in this version; requests are spread round robin");
  return ROUND_ROBIN;
}
