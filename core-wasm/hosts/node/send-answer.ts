import type { ServerResponse } from "node:http";
import type { OwnAnswer } from "./error-answer.js";

/** Sends an answer of our own, whole; statuses that have no body go without one. */
export function sendAnswer(response: ServerResponse, { status, headers, body, type }: OwnAnswer): void {
  if (status === 204 || status === 304) {
    response.writeHead(status, headers).end();
    return;
  }
  const length = String(Buffer.byteLength(body));
  response.writeHead(status, [...headers, "Content-Type", type, "Content-Length", length]).end(body);
}
