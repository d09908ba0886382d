/** How NGINX finds a cookie and an argument, read from its sources as literally as can be. */

/**
 * ngx_http_parse_multi_header_lines: at the start, and after each `;` or `,` and blanks, the name is looked for, letter
 * case aside; then blanks, `=`, blanks; the value ends at `;`. What follows a name that has no `=` is skipped from behind
 * the byte that stood in its place.
 */
export function cookieOf(cookies: string, name: string): string {
  let at = 0;
  while (at < cookies.length) {
    if (cookies.slice(at, at + name.length).toLowerCase() === name.toLowerCase()) {
      at += name.length;
      while (cookies[at] === " ") at++;
      if (cookies[at++] === "=") return /^ *([^;]*)/s.exec(cookies.slice(at))?.[1] ?? "";
    }
    while (at < cookies.length && !";,".includes(cookies[at++])) {}
    while (cookies[at] === " ") at++;
  }
  return "";
}

/** ngx_http_arg: wherever the name stands, letter case aside, at the start or behind `&`, and has `=` behind it. */
export function argumentOf(query: string, name: string): string {
  for (let at = 0; at < query.length; at++) {
    const found = query.slice(at, at + name.length + 1).toLowerCase() === `${name.toLowerCase()}=`;
    if (found && (at === 0 || query[at - 1] === "&")) return query.slice(at + name.length + 1).split("&")[0];
  }
  return "";
}
