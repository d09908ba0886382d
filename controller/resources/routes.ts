import type { PatternChecker } from "../../core-wasm/binding/api.js";
import type { Route } from "../../core-wasm/binding/source.js";
import type { ActionContext } from "./action.js";
import { readErrorPages, withErrorPages } from "./error-pages.js";
import type { Field } from "./field.js";
import type { VirtualServerEntry } from "./fragments.js";
import { readObjectName, readQualifiedName } from "./names.js";
import { type ObjectRef, refText } from "./object-ref.js";
import { readMatches, readOutcome } from "./outcome.js";
import { pathKey, readLocation } from "./path-rule.js";
import { quote } from "./problem.js";
import { crossReference } from "./reference.js";
import type { Shape } from "./shape.js";

/** What the routes of one object have in common. */
export interface RouteContext {
  ref: ObjectRef;
  upstreamKeys: ReadonlyMap<string, string>;
  checker: PatternChecker;
  /** Policies of the whole object guard its routes: see `namesPolicies`. */
  withheld: boolean;
}

const ROUTE_FIELDS = ["path", "policies", "matches", "errorPages", "action", "splits"];
/** Fields of raw configuration text, wherever they stand. */
export const SNIPPET_FIELDS: readonly string[] = ["http-snippets", "server-snippets", "location-snippets"];
const SNIPPET_REFUSED =
  "is refused: raw configuration from an object is how this family of controllers was taken over (CVE-2021-25742); remove it";

const MAX_ROUTES = 1000;
const MAX_POLICIES = 32;

const NO_MATCHES = "a delegated route has no matches; put them into the subroutes";
const DELEGATED: Shape = { rules: [{ cel: "!has(self.route) || !has(self.matches)", message: NO_MATCHES }] };

/** Reads `spec.routes` of a VirtualServer, in written order. */
export function readRoutes(list: Field, context: RouteContext): VirtualServerEntry[] {
  return readEntries(list, context, ["action", "splits", "route"]);
}

/** Reads `spec.subroutes` of a VirtualServerRoute: routes that cannot delegate any further. */
export function readSubroutes(list: Field, context: RouteContext): { route: Route; path: string }[] {
  return readEntries(list, context, ["action", "splits"]).filter((entry) => entry.kind === "own");
}

/** Raw configuration text is an error wherever it stands. */
export function refuseSnippets(owner: Field): void {
  for (const name of SNIPPET_FIELDS) owner.get(name).refuse("SNIPPET_REFUSED", SNIPPET_REFUSED);
}

/**
 * Policies are named and checked, and do not act yet. True if there are some: what they guard must not be open meanwhile,
 * so it answers 500, as the NGINX family answers where a policy is missing or cannot be applied.
 */
export function namesPolicies(list: Field): boolean {
  for (const item of list.items(MAX_POLICIES)) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["name", "namespace"]);
    readObjectName(item.get("name"));
    if (item.get("namespace").present) readObjectName(item.get("namespace"));
  }
  const named = list.present && !(Array.isArray(list.value) && list.value.length === 0);
  if (named) {
    const reason = "policies do not act in this version, and what they guard must not be open";
    list.warning("POLICY_NOT_ENFORCED", `${reason}: requests are answered 500; remove them to serve without`);
  }
  return named;
}

/** The route without what it did: every request for its path is answered 500. */
export function withheldRoute(route: Route): Route {
  const body = ["500 Internal Server Error\n"];
  return { ...route, matches: [], outcome: { kind: "return", status: 500, contentType: "text/plain", body } };
}

function readEntries(
  list: Field,
  context: RouteContext,
  outcomes: readonly ("action" | "splits" | "route")[],
): VirtualServerEntry[] {
  const entries: VirtualServerEntry[] = [];
  const seen = new Set<string>();
  for (const item of list.items(MAX_ROUTES)) {
    if (!item.isRequiredMap()) continue;
    const entry = readEntry(item, context, outcomes);
    if (entry === undefined) continue;
    const rule = entry.kind === "own" ? entry.route.path : entry.rule;
    if (seen.has(pathKey(rule))) {
      item.get("path").error("DUPLICATE_PATH", `there is another route with the path ${quote(labelOf(entry))}`);
    }
    seen.add(pathKey(rule));
    entries.push(entry);
  }
  return entries;
}

function readEntry(
  item: Field,
  context: RouteContext,
  outcomes: readonly ("action" | "splits" | "route")[],
): VirtualServerEntry | undefined {
  item.warnUnknown([...ROUTE_FIELDS, ...outcomes, ...SNIPPET_FIELDS]);
  refuseSnippets(item);
  const withheld = namesPolicies(item.get("policies")) || context.withheld;
  const errorPages = readErrorPages(item.get("errorPages"));
  const parsed = readLocation(item.get("path"), context.checker);
  const kind = item.exactlyOne(outcomes);
  if (kind === "route") {
    const to = readQualifiedName(item.get("route"), context.ref.namespace);
    if (item.shaped(DELEGATED).get("matches").present) item.get("matches").error("FIELD_CONFLICT", NO_MATCHES);
    if (parsed === undefined || to === undefined) return undefined;
    const { rule, label } = parsed;
    const path = item.get("route").path;
    const reference = crossReference(context.ref, { kind: "VirtualServerRoute", ...to });
    const name = `${to.namespace}/${to.name}`;
    return { kind: "delegated", rule, label, to: name, ...(reference && { reference }), path, errorPages, withheld };
  }
  const actions: ActionContext = { upstreamKeys: context.upstreamKeys, path: parsed };
  const matches = readMatches(item.get("matches"), actions, context.checker);
  const outcome = kind === undefined ? undefined : readOutcome(item, kind, actions);
  if (parsed === undefined || outcome === undefined) return undefined;
  const route: Route = { path: parsed.rule, label: parsed.label, resource: refText(context.ref), matches, outcome };
  return {
    kind: "own",
    route: withheld ? withheldRoute(route) : withErrorPages(route, errorPages),
    path: item.get("path").path,
  };
}

function labelOf(entry: VirtualServerEntry): string {
  return entry.kind === "own" ? entry.route.label : entry.label;
}
