/** Error pages, as settings of an action: what answers instead of a status. */
import { TAG_ERROR_HEADER, TAG_ERROR_REDIRECT, TAG_ERROR_RETURN } from "../../assembly/image/layout.js";
import type { ErrorPage } from "../source.js";
import type { Compilation } from "./compilation.js";
import { putSetting } from "./template.js";

/** Statuses that an error page can stand for: those of NGINX's error_page. */
const FIRST_CODE = 300;
const LAST_CODE = 599;

/** Writes error pages behind the header changes of their action. The name of one is `STATUS CODES [TYPE]` (ABI.md, "Settings"). */
export function putErrorPages(c: Compilation, pages: readonly ErrorPage[]): void {
  for (const page of pages) {
    const { codes, status } = page;
    const bad = codes.find((code) => !(Number.isInteger(code) && code >= FIRST_CODE && code <= LAST_CODE));
    if (bad !== undefined || codes.length === 0) throw c.invalid(`an error page for the status ${bad ?? ""}`);
    const known = status === undefined || (Number.isInteger(status) && status >= 100 && status <= 999);
    if (!known) throw c.invalid(`${status} is no status`);
    const head = `${status ?? 0} ${[...new Set(codes)].join(",")}`;
    if (page.kind === "redirect") {
      putSetting(c, TAG_ERROR_REDIRECT, head, page.location);
      continue;
    }
    putSetting(c, TAG_ERROR_RETURN, `${head} ${page.contentType}`, page.body);
    for (const { name, value } of page.headers ?? []) putSetting(c, TAG_ERROR_HEADER, name, value);
  }
}
