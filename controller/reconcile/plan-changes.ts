import { hash } from "node:crypto";
import { compareText } from "../model/age.js";
import { digest } from "../model/digest.js";
import { parsePatternText } from "../model/pattern-text.js";
import type { ModelChange, ModelSnapshot } from "../model/types.js";
import type { Plan, PlanStep } from "./plan.js";

const HASH_MASK = 0xffff_ffff_ffff_ffffn;

/**
 * The steps of a change in an order in which each is safe to apply: what routes lead to comes before the routes, and
 * goes after them. Within a group the order is that of the keys.
 */
export function planSteps(change: ModelChange): PlanStep[] {
  const steps: PlanStep[] = [];
  const removals: PlanStep[] = [];
  for (const [host, certificate] of sorted(change.certificates)) {
    if (certificate !== undefined) steps.push({ step: "set-certificate", certificate });
    else removals.unshift({ step: "remove-certificate", host });
  }
  for (const [key, upstream] of sorted(change.upstreams)) {
    if (upstream !== undefined) steps.push({ step: "set-upstream", upstream });
    else removals.unshift({ step: "remove-upstream", key });
  }
  for (const [text, rules] of sorted(change.hosts)) {
    if (rules !== undefined) steps.push({ step: "set-host", rules });
    else removals.unshift({ step: "remove-host", pattern: parsePatternText(text) });
  }
  return [...steps, ...removals];
}

/**
 * Turns changes of the model into plans and keeps the generation: a counter of plans with steps, and a hash of the whole
 * content. The hash is a sum over the pieces, so it is kept up to date by the pieces that changed, it does not depend on
 * their order, and two replicas with the same objects show the same one.
 */
export class Planner {
  readonly #digests = new Map<string, bigint>();
  #sum = 0n;
  #counter = 0;

  /** `counter-contenthash`, the hash as 16 hex digits. */
  get generation(): string {
    return `${this.#counter}-${this.#sum.toString(16).padStart(16, "0")}`;
  }

  /** Plan for a change. Without any change it has no steps and the generation stays. */
  planChanges(change: ModelChange): Plan {
    const steps = planSteps(change);
    if (steps.length > 0) this.#counter += 1;
    for (const [key, content] of pieces(change)) this.#setDigest(key, content);
    return { generation: this.generation, full: false, steps };
  }

  /** Plan for the whole model: a proxy drops what it holds besides. The counter goes up only if the content differs. */
  planFull(model: ModelSnapshot): Plan {
    const before = this.#sum;
    this.#digests.clear();
    this.#sum = 0n;
    for (const [key, content] of pieces(model)) this.#setDigest(key, content);
    if (this.#sum !== before) this.#counter += 1;
    return { generation: this.generation, full: true, steps: planSteps(model) };
  }

  #setDigest(key: string, content: object | undefined): void {
    const before = this.#digests.get(key) ?? 0n;
    const now =
      content === undefined ? 0n : BigInt(`0x${hash("sha256", `${key}\0${digest(content)}`, "hex").slice(0, 16)}`);
    this.#sum = (this.#sum - before + now) & HASH_MASK;
    if (content === undefined) this.#digests.delete(key);
    else this.#digests.set(key, now);
  }
}

/** Every piece of a change with a key that is unique among all pieces. A certificate stands for itself by its fingerprint. */
function* pieces(change: ModelChange): Iterable<[string, object | undefined]> {
  for (const [host, certificate] of change.certificates) {
    yield [`certificate ${host}`, certificate && [certificate.resource, certificate.fingerprint]];
  }
  for (const [key, upstream] of change.upstreams) yield [`upstream ${key}`, upstream];
  for (const [text, rules] of change.hosts) yield [`host ${text}`, rules];
}

function sorted<T>(pieces: Map<string, T>): [string, T][] {
  return [...pieces].sort(([a], [b]) => compareText(a, b));
}
