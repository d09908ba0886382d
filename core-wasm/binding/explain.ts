import { VARIABLE_NAMES } from "./compile/numbers.js";
import { type Context, SHARD, TRACE, TRACE_COUNT } from "./context.js";
import type { Decision, ExplainStep, PeerStatus } from "./decision.js";
import type { ShardNames } from "./shard-names.js";

const ENTRY_WORDS = 5;
const PATTERNS = ["host", "wildcard host (one label)", "wildcard host", "rules without host", "default"];

/** The text of a condition record: what is read and what it is compared with. */
function conditionText(context: Context, image: number, at: number): string {
  const { bytes, words } = context;
  const [source, test, negated, variable] = bytes.subarray(at, at + 4);
  const text = (offset: number, length: number) => context.latin1(image + offset, length);
  const name = words[(at + 4) >> 2];
  const nameLength = words[(at + 8) >> 2];
  let read: string;
  if (source === 1) {
    const headers = words[(image + 60) >> 2];
    let header = image + headers;
    for (let i = 4; i < name; i++) header += 4 + ((words[header >> 2] + 3) & ~3);
    read = `header ${context.latin1(header + 4, words[header >> 2])}`;
  } else if (source === 4) {
    read = `$${VARIABLE_NAMES[variable]}`;
  } else {
    read = `${source === 2 ? "cookie" : "argument"} ${text(name, nameLength)}`;
  }
  const operand = test === 1 ? JSON.stringify(text(words[(at + 12) >> 2], words[(at + 16) >> 2])) : "";
  const not = negated ? "not " : "";
  return test === 1
    ? `${read} is ${not}${operand}`
    : test === 2
      ? `${read} does ${not}match its pattern`
      : `${read} is ${not}empty`;
}

/** Turns the trace of the last decision into steps. `names` gives the names of the shard at an address. */
export function readTrace(context: Context, names: (image: number) => ShardNames, decision: Decision): ExplainStep[] {
  const steps: ExplainStep[] = [];
  // The shard of the decision may be another one than that whose rules were tried: the default, or none.
  const decided = context.word(SHARD);
  let image = 0;
  let shard: ShardNames | undefined;
  const trace = context.word(TRACE) >> 2;
  const count = context.word(TRACE_COUNT);
  const add = (step: ExplainStep["step"], rule: string, taken: boolean, reason: string, resource?: string) =>
    steps.push({ step, rule, ...(resource ? { resource } : {}), result: taken ? "taken" : "passed", reason });
  const owner = (index: number) => shard?.routes[index]?.resource;
  const label = (index: number) => shard?.routes[index]?.label ?? `#${index}`;
  for (let i = 0; i < count; i++) {
    const at = trace + i * ENTRY_WORDS;
    const [kind, result, subject, value, length] = context.words.subarray(at, at + ENTRY_WORDS);
    const taken = result === 1;
    switch (kind) {
      case 1:
        if (taken) {
          image = value >>> 0;
          shard = names(image);
        }
        add(
          "host",
          PATTERNS[subject],
          taken,
          taken ? "covers the host of the request" : "no such rules cover the host",
        );
        break;
      case 2:
        add(
          "guard",
          `guard ${subject}`,
          taken,
          taken ? "its conditions hold" : "a condition does not hold",
          shard?.guards[subject],
        );
        break;
      case 3:
        add("route", label(subject), taken, taken ? "covers the path" : "does not cover the path", owner(subject));
        break;
      case 4:
        add("route", `match ${subject}`, taken, taken ? "all conditions hold" : "a condition does not hold");
        break;
      case 5: {
        const seen = JSON.stringify(context.latin1(value >>> 0, length));
        add("condition", conditionText(context, image, subject >>> 0), taken, `the request has ${seen}`);
        break;
      }
      case 6:
        add("split", `entry ${subject}`, true, "chosen by weight");
        break;
      case 7:
        add("route", label(subject), false, "no match holds and it has no default", owner(subject));
        break;
      case 8:
        add(
          "unmatched",
          ["default of the host's objects", "default backend", "nothing"][subject],
          taken,
          taken ? (subject === 2 ? "404" : "no route decided") : "there is none",
          taken && subject !== 2 ? names(decided).unmatched : undefined,
        );
        break;
      case 9:
        add("route", label(subject), false, "regexes are not tried: the longest prefix says so (^~)", owner(subject));
        break;
    }
  }
  if (decision.action === "return" && decision.status === 400) {
    add("request", "host and target", false, "the host or the target of the request is not valid");
  }
  if (decision.action === "return" && decision.busy) {
    add("upstream", decision.upstream || "upstream", false, "each peer has as many requests under way as it may");
  }
  if (decision.action === "return" && decision.status === 503 && decision.body === undefined) {
    add("upstream", decision.upstream || "upstream", false, "it has no peer that is ready");
  }
  if (decision.action === "proxy") {
    add("upstream", decision.upstream, true, `peer ${peerText(decision.peer)}`);
  }
  return steps;
}

function peerText({ address, port }: { address: string; port: number }): string {
  return `${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/** What there is to say about peers that are not simply up. */
export function peerSteps(peers: readonly PeerStatus[]): ExplainStep[] {
  return peers.flatMap((peer): ExplainStep[] => {
    const facts = [
      peer.draining || peer.state === "draining" ? "it drains" : "",
      peer.state === "down" ? "it is down by its checks" : "",
      peer.out ? "it is out because requests failed" : "",
    ].filter((fact) => fact !== "");
    if (facts.length === 0) return [];
    return [{ step: "upstream", rule: `peer ${peerText(peer)}`, result: "passed", reason: facts.join(", ") }];
  });
}
