import type { FilledErrorPage } from "../../binding/decision.js";
import { headerValue } from "./header-names.js";
import { ERROR_PAGE_TYPE, errorPage } from "./own-answers.js";
import { addResponseHeaders } from "./response-headers.js";

/** An answer of the proxy itself. `headers` is a flat list of names and values; `body` is a byte string. */
export interface OwnAnswer {
  status: number;
  headers: string[];
  body: Buffer | string;
  type: string;
}

/** The page of the object that stands for `status`, if there is one. The first that lists it counts. */
export function findErrorPage(
  pages: readonly FilledErrorPage[] | undefined,
  status: number,
): FilledErrorPage | undefined {
  return pages?.find(({ codes }) => codes.includes(status));
}

/** What a client gets instead of `status`: a page of the object, else one that shows the status. */
export function errorAnswer(status: number, pages: readonly FilledErrorPage[] | undefined): OwnAnswer {
  const page = findErrorPage(pages, status);
  if (page === undefined) return { status, headers: [], body: errorPage(status), type: ERROR_PAGE_TYPE };
  if (page.kind === "redirect") {
    const headers = ["Location", headerValue(page.location)];
    return { status: page.status, headers, body: errorPage(page.status), type: ERROR_PAGE_TYPE };
  }
  const headers: string[] = [];
  const own = page.status ?? status;
  addResponseHeaders(headers, own, page.headers);
  return { status: own, headers, body: Buffer.from(page.body, "latin1"), type: headerValue(page.contentType) };
}
