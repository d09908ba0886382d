import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { Match, Outcome, Split } from "../../core-wasm/binding/source.js";
import { type ActionContext, readAction } from "./action.js";
import { MAX_CONDITIONS, readCondition } from "./condition.js";
import type { Field } from "./field.js";
import type { Shape } from "./shape.js";

/** Matches of one route, and entries of one split: what bounds the cost of a rule in a schema over all of them. */
const MAX_MATCHES = 32;
const MAX_SPLITS = 16;

const SPLITS: Shape = {
  rules: [{ cel: "self.map(entry, entry.weight).sum() == 100", message: "the weights must add up to 100" }],
};

/** Reads `action` or `splits` of a route or match; `kind` says which of them is there. */
export function readOutcome(owner: Field, kind: "action" | "splits", context: ActionContext): Outcome | undefined {
  return kind === "action" ? readAction(owner.get("action"), context) : readSplits(owner.get("splits"), context);
}

/** Matches in written order; those with errors are left out, and the object is invalid then. */
export function readMatches(list: Field, context: ActionContext, checker: PatternChecker): Match[] {
  const matches: Match[] = [];
  for (const item of list.items(MAX_MATCHES)) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["conditions", "action", "splits"]);
    const conditions = item
      .get("conditions")
      .requiredItems(1, MAX_CONDITIONS)
      .map((condition) => readCondition(condition, checker))
      .filter((condition) => condition !== undefined);
    const kind = item.exactlyOne(["action", "splits"]);
    const outcome = kind === undefined ? undefined : readOutcome(item, kind, context);
    if (outcome !== undefined) matches.push({ conditions, outcome });
  }
  return matches;
}

function readSplits(list: Field, context: ActionContext): Split | undefined {
  const items = list.shaped(SPLITS).requiredItems(2, MAX_SPLITS);
  let sum = 0;
  const entries: Split["entries"] = [];
  for (const item of items) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["weight", "action"]);
    const weightField = item.get("weight");
    const weight = weightField.required() ? weightField.integer(0, 100) : undefined;
    const action = readAction(item.get("action"), context);
    sum += weight ?? 0;
    if (weight !== undefined && action !== undefined) entries.push({ weight, action });
  }
  if (items.length > 0 && sum !== 100) list.error("SPLIT_WEIGHTS", `the weights add up to ${sum}, not to 100`);
  return { kind: "split", entries };
}
