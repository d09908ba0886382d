import type { Field } from "./field.js";
import { isHeaderName } from "./names.js";
import { quote } from "./problem.js";
import { readDuration } from "./units.js";

/** `sessionCookie` of an upstream (NGINX sticky cookie directive). */
export function checkSessionCookie(field: Field): void {
  if (!field.isMap()) return;
  field.warnUnknown(["enable", "name", "path", "expires", "domain", "httpOnly", "secure", "samesite"]);
  const enabled = field.get("enable").boolean() === true;
  const name = enabled || field.get("name").present ? field.get("name").requiredLine() : undefined;
  if (name !== undefined && !isHeaderName(name)) {
    field.get("name").error("NAME_INVALID", `${quote(name)} is no cookie name`);
  }
  for (const attribute of ["path", "domain"]) checkCookieAttribute(field.get(attribute));
  if (field.get("expires").value !== "max") readDuration(field.get("expires"));
  field.get("httpOnly").boolean();
  field.get("secure").boolean();
  const samesite = field.get("samesite").line();
  if (samesite !== undefined && !["strict", "lax", "none"].includes(samesite.toLowerCase())) {
    field.get("samesite").error("ENUM_INVALID", `${quote(samesite)} is none of strict, lax, none`);
  }
  field.warnInactive();
}

function checkCookieAttribute(field: Field): void {
  const text = field.line();
  if (text !== undefined && /[;,\s]|[^\x21-\x7e]/.test(text)) {
    field.error("TEXT_INVALID", `${quote(text)} has a character that a cookie attribute cannot have`);
  }
}
