import type { Action, AnswerHeader, ErrorPage, Outcome, Route } from "../../core-wasm/binding/source.js";
import { readRedirect, readReturn } from "./action.js";
import type { Field } from "./field.js";

const KINDS = ["return", "redirect"] as const;
/** What NGINX's error_page can stand for. */
const FIRST_CODE = 300;
const LAST_CODE = 599;
const MAX_ERROR_PAGES = 32;
const MAX_CODES = 64;

/**
 * `errorPages` of a route: for each list of statuses an answer or a redirect. As in the NGINX family an answer keeps the
 * status that it stands for where it names none, and is HTML where it names no type.
 */
export function readErrorPages(list: Field): ErrorPage[] {
  const pages: ErrorPage[] = [];
  for (const item of list.items(MAX_ERROR_PAGES)) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["codes", ...KINDS]);
    const read = item.get("codes").requiredItems(1, MAX_CODES);
    const codes = read.map((code) => code.required() && code.integer(FIRST_CODE, LAST_CODE)).filter(isCode);
    const kind = item.exactlyOne(KINDS);
    const answer = kind === undefined ? undefined : readAnswer(item.get(kind), kind);
    if (answer !== undefined && codes.length > 0) pages.push({ codes, ...answer });
  }
  return pages;
}

/** The route with error pages on each of its actions that proxies. */
export function withErrorPages(route: Route, errorPages: readonly ErrorPage[]): Route {
  if (errorPages.length === 0) return route;
  const { outcome } = route;
  const pages = [...errorPages];
  return {
    ...route,
    matches: route.matches.map((match) => ({ ...match, outcome: onOutcome(match.outcome, pages) })),
    ...(outcome && { outcome: onOutcome(outcome, pages) }),
  };
}

type Answer = ErrorPage extends infer P ? (P extends unknown ? Omit<P, "codes"> : never) : never;

function readAnswer(field: Field, kind: (typeof KINDS)[number]): Answer | undefined {
  if (kind === "redirect") {
    const redirect = readRedirect(field);
    return redirect?.kind === "redirect" ? { kind, status: redirect.status, location: redirect.location } : undefined;
  }
  const answer = readReturn(field, "text/html");
  if (answer?.kind !== "return") return undefined;
  const { status, contentType, body, headers = [] } = answer;
  const added = headers.filter((change): change is AnswerHeader => change.op === "add-response");
  const given = field.get("code").present ? { status } : {};
  return { kind, ...given, contentType, body, ...(added.length > 0 && { headers: added }) };
}

function onOutcome(outcome: Outcome, errorPages: ErrorPage[]): Outcome {
  if (outcome.kind !== "split") return onAction(outcome, errorPages);
  const entries = outcome.entries.map(({ weight, action }) => ({ weight, action: onAction(action, errorPages) }));
  return { kind: "split", entries };
}

/** Pages of the route itself go before those of the route that delegates to it. */
function onAction(action: Action, errorPages: ErrorPage[]): Action {
  return action.kind === "proxy" && action.errorPages === undefined ? { ...action, errorPages } : action;
}

function isCode(code: number | undefined | false): code is number {
  return typeof code === "number";
}
