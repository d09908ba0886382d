import type { SessionCookie } from "../model/types.js";
import type { Field } from "./field.js";
import { TOKEN } from "./names.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";
import { DURATION_PATTERN, readDuration } from "./units.js";

const SAME_SITE = { strict: "Strict", lax: "Lax", none: "None" } as const;

const ATTRIBUTE: Shape = { patterns: [/^[!-+\--:<-~]+$/] };
const EXPIRES: Shape = { patterns: [new RegExp(`^(max|${DURATION_PATTERN})$`)] };
const SAME_SITE_NAME: Shape = { patterns: [/^(strict|lax|none)$/i] };
const COOKIE: Shape = {
  rules: [{ cel: "!has(self.enable) || !self.enable || has(self.name)", message: "a cookie needs a name" }],
};

/** `sessionCookie` of an upstream (NGINX sticky cookie directive). Undefined unless it is switched on. */
export function readSessionCookie(field: Field): SessionCookie | undefined {
  if (!field.shaped(COOKIE).isMap()) return undefined;
  field.warnUnknown(["enable", "name", "path", "expires", "domain", "httpOnly", "secure", "samesite"]);
  const enabled = field.isEnabled();
  const nameField = field.get("name").shaped(TOKEN);
  const name = enabled || nameField.present ? nameField.requiredLine() : undefined;
  if (name !== undefined && !hasShape(name, TOKEN)) {
    nameField.error("NAME_INVALID", `${quote(name)} is no cookie name; use letters, digits, - and _`);
  }
  const path = readAttribute(field.get("path"));
  const domain = readAttribute(field.get("domain"));
  const expiresField = field.get("expires").shaped(EXPIRES);
  const expires = expiresField.value === "max" ? "max" : readDuration(expiresField);
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
  const text = field.shaped(SAME_SITE_NAME).line();
  if (text === undefined) return undefined;
  const lower = text.toLowerCase();
  if (lower === "strict" || lower === "lax" || lower === "none") return SAME_SITE[lower];
  field.error("ENUM_INVALID", `${quote(text)} is none of strict, lax, none`);
  return undefined;
}

function readAttribute(field: Field): string | undefined {
  const text = field.shaped(ATTRIBUTE).line();
  if (text === undefined || hasShape(text, ATTRIBUTE)) return text;
  field.error("TEXT_INVALID", `${quote(text)} has a character that a cookie attribute cannot have`);
  return undefined;
}
