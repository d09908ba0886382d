import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Core } from "../../core-wasm/binding/core.js";
import type { ExplainStep, RequestInput } from "../../core-wasm/binding/decision.js";
import { RouteTable } from "../../core-wasm/binding/route-table.js";
import { type DecisionJson, decisionJson } from "./decision-json.js";
import type { LintOutput } from "./lint.js";
import { loadModel } from "./load-model.js";
import type { ModelChoices } from "./model-options.js";
import { parseRequestLine, parseRequestSpec, type RequestSpec } from "./request-line.js";

/** Options of `match` beside the request. */
export interface MatchOptions extends ModelChoices {
  configDir: string;
  json: boolean;
  explain: boolean;
}

/**
 * A routing table with everything that a file or folder holds. Problems of files are handed to `warn`. Undefined if the
 * path itself cannot be read: nothing can be decided then.
 */
export async function loadTable(
  core: Core,
  options: ModelChoices & { configDir: string },
  warn: (text: string) => void,
): Promise<RouteTable | undefined> {
  const model = await loadModel(core, options, warn);
  if (model === undefined) return undefined;
  const table = new RouteTable(core);
  const { hosts, upstreams } = model.snapshot();
  for (const upstream of upstreams.values()) if (upstream) table.setPeers(upstream.peers);
  for (const rules of hosts.values()) if (rules) table.setHost(rules);
  return table;
}

/** Splits are decided with the same number each time, so that a call can be repeated. */
const RANDOM = 0;

function formatStep({ step, rule, resource, result, reason }: ExplainStep): string {
  const mark = result === "taken" ? "+" : "-";
  return `  ${mark} ${step.padEnd(9)} ${rule}${resource ? ` (${resource})` : ""}: ${reason}`;
}

/** Human form: one line for the decision, one for each step. */
function format(decision: DecisionJson, steps: readonly ExplainStep[] | undefined): string {
  const { action, resource, host, path, ...rest } = decision;
  const details = Object.entries(rest).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const origin = resource ? `  from ${resource}, host ${JSON.stringify(host)}, path ${JSON.stringify(path)}` : "";
  const lines = [`${action} ${details.join(" ")}`, ...(origin ? [origin] : []), ...(steps ?? []).map(formatStep)];
  return `${lines.join("\n")}\n`;
}

function answer(table: RouteTable, request: RequestInput, options: MatchOptions): string {
  if (!options.explain) {
    const decision = decisionJson(table.decide(request, RANDOM));
    return options.json ? `${JSON.stringify(decision)}\n` : format(decision, undefined);
  }
  const { decision, steps } = table.explain(request, RANDOM);
  const json = decisionJson(decision);
  return options.json ? `${JSON.stringify({ ...json, explain: steps })}\n` : format(json, steps);
}

/** `match URL`: prints the decision for one request. Resolves with the exit status. */
export async function runMatch(
  core: Core,
  spec: RequestSpec,
  options: MatchOptions,
  out: LintOutput,
  errors: LintOutput,
): Promise<number> {
  let request: RequestInput;
  try {
    request = parseRequestSpec(spec);
  } catch (error) {
    errors.write(`${(error as Error).message}\n`);
    return 2;
  }
  const table = await loadTable(core, options, (text) => errors.write(`${text}\n`));
  if (table === undefined) return 2;
  out.write(answer(table, request, options));
  return 0;
}

/**
 * `match --requests FILE`: one JSON request a line, one decision a line. A line that is no request gets a line
 * `{"error": ...}`, and the exit status is 1.
 */
export async function runMatchFile(
  core: Core,
  file: string,
  options: MatchOptions,
  out: LintOutput,
  errors: LintOutput,
): Promise<number> {
  const table = await loadTable(core, options, (text) => errors.write(`${text}\n`));
  if (table === undefined) return 2;
  let status = 0;
  const input = file === "-" ? process.stdin : createReadStream(file);
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  try {
    for await (const line of lines) {
      if (line.trim() === "") continue;
      try {
        out.write(answer(table, parseRequestLine(line), { ...options, json: true }));
      } catch (error) {
        status = 1;
        out.write(`${JSON.stringify({ error: (error as Error).message })}\n`);
      }
    }
  } catch (error) {
    errors.write(`${file}: ${(error as Error).message}\n`);
    return 2;
  }
  return status;
}
