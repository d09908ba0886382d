import type { IncomingMessage, ServerResponse } from "node:http";
import type { Decision } from "../../binding/index.js";
import type { BundleRouter } from "./bundle-router.js";
import { errorAnswer, type OwnAnswer } from "./error-answer.js";
import { Exchange, type ExchangeOptions } from "./exchange.js";
import { refuseHead } from "./head-checks.js";
import { headerValue } from "./header-names.js";
import { ERROR_PAGE_TYPE, errorPage } from "./own-answers.js";
import { PeerAgents } from "./peer-agents.js";
import { requestInput } from "./request-input.js";
import { addResponseHeaders } from "./response-headers.js";
import { sendAnswer } from "./send-answer.js";

/** Longer targets are answered with 414; Node's own limit of a head is below. */
const MAX_TARGET = 65_536;

/** Options of `createHandler`. */
export interface HandlerOptions extends ExchangeOptions {}

/** A listener of `request` of node:http and node:https: decides by the core and passes on to the peer. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * A reverse proxy in one function. It streams both ways, carries out redirects, bodies, rewrites, header changes and error
 * pages, and tries another peer where one can't be reached. Session cookies, queues and upgrades it leaves to the embedded proxy
 * of the controller. No request and no peer makes it throw.
 */
export function createHandler(router: BundleRouter, options: HandlerOptions = {}): Handler {
  const agents = new PeerAgents();
  return (request, response) => {
    const refusal = refuseHead(request, MAX_TARGET);
    if (refusal) {
      response.shouldKeepAlive = false;
      sendAnswer(response, errorAnswer(refusal.status, undefined));
      return;
    }
    const decision = router.decide(requestInput(request));
    if (decision.action === "proxy") new Exchange(router, agents, options, request, response, decision).begin();
    else sendAnswer(response, ownAnswer(decision));
  };
}

/** The answer to a request that no peer gets. */
function ownAnswer(decision: Exclude<Decision, { action: "proxy" }>): OwnAnswer {
  const { status } = decision;
  if (decision.action === "redirect") {
    const headers = ["Location", headerValue(decision.location)];
    addResponseHeaders(headers, status, decision.headers);
    return { status, headers, body: errorPage(status), type: ERROR_PAGE_TYPE };
  }
  const answer = errorAnswer(status, decision.errorPages);
  addResponseHeaders(answer.headers, answer.status, decision.headers);
  if (decision.body !== undefined) {
    answer.body = Buffer.from(decision.body, "latin1");
    answer.type = headerValue(decision.contentType ?? "text/plain");
  }
  return answer;
}
