import type { BalanceMethod } from "../../core-wasm/binding/source.js";
import type { Field } from "./field.js";
import { quote } from "./problem.js";
import type { Shape } from "./shape.js";
import { parseTemplate, type TemplateRules, templatePattern } from "./template.js";
import { HASH_KEY_VARIABLES } from "./variables.js";

export const ROUND_ROBIN: BalanceMethod = { kind: "round-robin" };

/** The methods without a key, by their spelling. */
const PLAIN_METHODS: Readonly<Record<string, BalanceMethod>> = {
  round_robin: ROUND_ROBIN,
  least_conn: { kind: "least-conn" },
  ip_hash: { kind: "ip-hash" },
  random: { kind: "random" },
  "random two": { kind: "random-two" },
  "random two least_conn": { kind: "random-two" },
};

const KEY_RULES: TemplateRules = { variables: HASH_KEY_VARIABLES, bareNames: true };

const LB_METHOD: Shape = {
  patterns: [
    /^ *(round_robin|least_conn|ip_hash|random( +two( +least_conn)?)?|(hash +[^ ]+( +consistent)?|(chash|maglev) +[^ ]+)( +bounded)?) *$/,
    templatePattern(KEY_RULES),
    // A key without a variable is the same for every request.
    /^ *[lri]|\$[A-Za-z_{]/,
  ],
};

const ALL_METHODS = [
  "round_robin",
  "least_conn",
  "ip_hash",
  "random",
  "random two [least_conn]",
  "hash KEY [consistent] [bounded]",
  "chash KEY [bounded]",
  "maglev KEY [bounded]",
].join(", ");

/**
 * `lb-method` of an upstream: round robin where there is none. `chash KEY` is the CRC-32 ring of the ids `ip:port`,
 * `hash KEY consistent` that of NGINX. `hash KEY` is Maglev, as `maglev KEY`: the modulo of NGINX promises no more than
 * the same peer for the same key, and Maglev keeps that promise for nearly every key through a change of the peers too.
 * `bounded` keeps the requests of one key off a peer that has more than 1.25 times its share.
 */
export function readBalanceMethod(field: Field): BalanceMethod {
  const words = field
    .shaped(LB_METHOD)
    .line()
    ?.split(" ")
    .filter((word) => word !== "") ?? ["round_robin"];
  const method = words.join(" ");
  if (Object.hasOwn(PLAIN_METHODS, method)) return PLAIN_METHODS[method];
  const [name, key, ...modes] = words;
  const bounded = modes.at(-1) === "bounded";
  const kind = keyedKind(name, bounded ? modes.slice(0, -1) : modes);
  if (kind === undefined || key === undefined) {
    field.error("LB_METHOD_INVALID", `${quote(method)} is none of ${ALL_METHODS}`);
    return ROUND_ROBIN;
  }
  const template = parseTemplate(key, KEY_RULES, field);
  if (template === undefined) return ROUND_ROBIN;
  if (template.every((part) => typeof part === "string")) {
    field.error(
      "LB_METHOD_INVALID",
      `the key ${quote(key)} is the same for every request; use a variable such as $uri`,
    );
    return ROUND_ROBIN;
  }
  return { kind, key: template, ...(bounded && { bounded }) };
}

function keyedKind(name: string, modes: readonly string[]): "ring" | "nginx-ring" | "maglev" | undefined {
  const mode = modes.join(" ");
  if (name === "hash") return mode === "consistent" ? "nginx-ring" : mode === "" ? "maglev" : undefined;
  if (mode !== "") return undefined;
  return name === "chash" ? "ring" : name === "maglev" ? "maglev" : undefined;
}
