import type { SessionCookie } from "../model/types.js";
import type { Field } from "./field.js";
import { isHeaderName } from "./names.js";
import { quote } from "./problem.js";
import { readDuration } from "./units.js";

const SAME_SITE = { strict: "Strict", lax: "Lax", none: "None" } as const;

/** `sessionCookie` of an upstream (NGINX sticky cookie directive). Undefined unless it is switched on. */
export function readSessionCookie(field: Field): SessionCookie | undefined {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["enable", "name", "path", "expires", "domain", "httpOnly", "secure", "samesite"]);
  const enabled = field.isEnabled();
  const name = enabled || field.get("name").present ? field.get("name").requiredLine() : undefined;
  if (name !== undefined && !isHeaderName(name)) {
    field.get("name").error("NAME_INVALID", `${quote(name)} is no cookie name; use letters, digits, - and _`);
  }
  const path = readAttribute(field.get("path"));
  const domain = readAttribute(field.get("domain"));
  const expires = field.get("expires").value === "max" ? "max" : readDuration(field.get("expires"));
  const httpOnly = field.get("httpOnly").boolean() ?? false;
  const secure = field.get("secure").boolean() ?? false;
  const sameSite = readSameSite(field.get("samesite"));
  if (sameSite === "None" && !secure) {
    field
      .get("samesite")
      .warning("FIELD_NO_EFFECT", "browsers drop a cookie with None that is not secure; set secure: true");
  }
  if (!enabled || name === undefined) return undefined;
  return {
    name,
    ...(path !== undefined && { path }),
    ...(expires !== undefined && { expires }),
    ...(domain !== undefined && { domain }),
    httpOnly,
    secure,
    ...(sameSite !== undefined && { sameSite }),
  };
}

function readSameSite(field: Field): SessionCookie["sameSite"] {
  const text = field.line();
  if (text === undefined) return undefined;
  const lower = text.toLowerCase();
  if (lower === "strict" || lower === "lax" || lower === "none") return SAME_SITE[lower];
  field.error("ENUM_INVALID", `${quote(text)} is none of strict, lax, none`);
  return undefined;
}

function readAttribute(field: Field): string | undefined {
  const text = field.line();
  if (text === undefined || !/[;,\s]|[^\x21-\x7e]/.test(text)) return text;
  field.error("TEXT_INVALID", `${quote(text)} has a character that a cookie attribute cannot have`);
  return undefined;
}
