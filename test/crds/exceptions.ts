import type { Problem } from "../../controller/resources/problem.js";

/** What readers refuse and a schema can't say. */
export interface Exception {
  code: Problem["code"];
  /** Of the message, where a schema says the rest of what the code stands for. */
  message?: RegExp;
  why: string;
  /** A route of a VirtualServer with the upstream `app` that shows it, or further fields of that upstream. */
  example: { route: string } | { upstream: string };
}

const pass = "action: {pass: app}";

/** Each has an example, which a test holds: none stands here that a schema could say by now. */
export const EXCEPTIONS: readonly Exception[] = [
  {
    code: "UPSTREAM_UNKNOWN",
    why: "every action against every upstream costs more than the API server allows a rule",
    example: { route: "path: /, action: {pass: other}" },
  },
  {
    code: "DUPLICATE_PATH",
    why: "every path against every other costs more than the API server allows a rule",
    example: { route: `path: /twice, ${pass}}, {path: "/twice ", ${pass}` },
  },
  {
    code: "REGEX_INVALID",
    why: "a schema does not compile patterns",
    example: { route: `path: "~ (", ${pass}` },
  },
  {
    code: "CAPTURE_UNKNOWN",
    why: "how many groups there are depends on the path of the route",
    example: { route: "path: ~ ^/a, action: {proxy: {upstream: app, rewritePath: /$1}}" },
  },
  {
    code: "DURATION_INVALID",
    message: /must be from \dms to 24 days/,
    why: "a pattern does not add units up",
    example: { upstream: "read-timeout: 25d" },
  },
  {
    code: "STATUS_INVALID",
    message: /is none of the forms "200"/,
    why: "a pattern does not compare the ends of a range",
    example: { upstream: "healthCheck: {enable: true, statusMatch: 300-200}" },
  },
  {
    code: "LIMIT_EXCEEDED",
    message: /longer than \d+ characters/,
    why: "a character outside of the first plane counts as two here, and as one in a schema",
    example: { route: `path: /, action: {return: {body: "${"\u{1f600}".repeat(40_000)}"}}` },
  },
];

/** Whether a schema can't say what the problem is about. */
export function isException({ code, message }: Problem): boolean {
  return EXCEPTIONS.some((exception) => exception.code === code && (exception.message?.test(message) ?? true));
}
