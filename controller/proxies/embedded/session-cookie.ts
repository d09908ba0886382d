import type { SessionCookie } from "../../model/types.js";

const MAX = "; expires=Thu, 31 Dec 2037 23:55:55 GMT; max-age=315360000";

/**
 * The value of a Set-Cookie header that leads a client back to its peer, with the attributes in NGINX's order. `value` is
 * what the core gives; name and attributes were checked with their object. `now`: milliseconds since the epoch.
 */
export function sessionCookieText(cookie: SessionCookie, value: string, now: number): string {
  const { name, path, expires, domain, httpOnly, secure, sameSite } = cookie;
  let text = `${name}=${value}`;
  if (expires === "max") text += MAX;
  else if (expires !== undefined) {
    text += `; expires=${new Date(now + expires).toUTCString()}; max-age=${Math.floor(expires / 1000)}`;
  }
  if (domain !== undefined) text += `; domain=${domain}`;
  if (httpOnly) text += "; httponly";
  if (secure) text += "; secure";
  if (sameSite !== undefined) text += `; samesite=${sameSite.toLowerCase()}`;
  if (path !== undefined) text += `; path=${path}`;
  return text;
}

/** True for a cookie whose time begins anew with each answer, as NGINX has it. */
export function isRenewed(cookie: SessionCookie): boolean {
  return cookie.expires !== undefined && cookie.expires !== "max";
}
