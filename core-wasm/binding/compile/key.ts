/** Compiles the key of a peer set. Layout: core-wasm/assembly/image/layout.ts. */
import {
  FACTS,
  K_COOKIE,
  K_HEADER_COUNT,
  K_NEED,
  K_SIZE,
  K_STICKY,
  K_STICKY_LENGTH,
  K_TEMPLATE,
  K_TEMPLATE_LENGTH,
  KEY_HEADER,
  MAX_KEY_SLOTS,
} from "../../assembly/image/layout.js";
import type { Template } from "../source.js";
import { Compilation } from "./compilation.js";
import { ImageWriter } from "./image-writer.js";
import { putTemplate } from "./template.js";

const NO_KEY = new Uint8Array(0);

/**
 * Compiles what a peer set reads of a request: the template that is hashed (empty: none), and the name of the session
 * cookie. The bytes are empty where there is neither. `set` is the key of the set, for errors. Throws CoreError
 * CORE_SOURCE_INVALID for a part without a name, CORE_LIMIT for too many headers or a name that is too long.
 */
export function compileKey(set: string, template: Template, sessionCookie?: string): Uint8Array {
  if (template.length === 0 && sessionCookie === undefined) return NO_KEY;
  // Headers and need list stand before the templates, but are known after them.
  const parts = new Compilation("key of", MAX_KEY_SLOTS - FACTS);
  parts.begin(set);
  const hashed = putTemplate(parts, template);
  const sticky = sessionCookie === undefined ? 0 : putTemplate(parts, [{ kind: "cookie", name: sessionCookie }]);
  const templates = new ImageWriter();
  templates.append(parts.out.written);

  parts.out.reset();
  const { out } = parts;
  out.reserve(KEY_HEADER);
  parts.headers.put(out);
  const need = parts.putNeed();
  const start = out.length;
  out.append(templates.written);
  out.patch(K_SIZE, out.length);
  out.patch(K_HEADER_COUNT, parts.headers.count);
  out.patch(K_COOKIE, parts.cookieSlot);
  out.patch(K_NEED, need);
  out.patch(K_TEMPLATE, start);
  out.patch(K_TEMPLATE_LENGTH, hashed);
  if (sticky > 0) {
    out.patch(K_STICKY, start + hashed);
    out.patch(K_STICKY_LENGTH, sticky);
  }
  return out.written;
}
