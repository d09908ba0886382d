/**
 * What a bundle says of an upstream besides its peers (BUNDLE.md, kind 3), as far as the filter uses it: how the peers are
 * spoken to, and the session cookie.
 *
 * Description: u32 transport (bit 0 TLS, bit 1 gRPC) | u32 length of the cookie's name (0: no cookie) | u32 length of its
 * attributes | u32 zero | i64 ms that it lasts (-1: as the attributes say) | name | attributes.
 */
import { alloc, free } from "../../../assembly/memory/heap";
import { clearGrowing, dropGrowing, growing, grownBytes, grownLength, putBytes } from "./growing";
import { jsonBoolean, jsonByte, jsonEnded, jsonNumber, jsonString, skipJson, startJson } from "./json";
import { ascii, bytesOf, isText, lengthOf } from "./text";

export const D_TRANSPORT: usize = 0;
export const D_NAME_LENGTH: usize = 4;
export const D_ATTRIBUTES_LENGTH: usize = 8;
export const D_LASTS: usize = 16;
export const D_TEXTS: usize = 24;

const TLS: u32 = 1;
const GRPC: u32 = 2;

const KEY = ascii("key");
const DISPLAY = ascii("display");
const TRANSPORT = ascii("transport");
const SESSION_COOKIE = ascii("sessionCookie");
const TLS_NAME = ascii("tls");
const PROTOCOL = ascii("protocol");
const GRPC_WORD = ascii("grpc");
const HTTP_WORD = ascii("http");
const NAME = ascii("name");
const EXPIRES = ascii("expires");
const MAX = ascii("max");
const DOMAIN = ascii("domain");
const HTTP_ONLY = ascii("httpOnly");
const SECURE = ascii("secure");
const SAME_SITE = ascii("sameSite");
const COOKIE_PATH = ascii("path");
const MAX_TEXT = ascii("; expires=Thu, 31 Dec 2037 23:55:55 GMT; max-age=315360000");
const DOMAIN_TEXT = ascii("; domain=");
const HTTP_ONLY_TEXT = ascii("; httponly");
const SECURE_TEXT = ascii("; secure");
const SAME_SITE_TEXT = ascii("; samesite=");
const PATH_TEXT = ascii("; path=");

/** What has been read so far. */
let transport: u32 = 0;
let lasts: i64 = -1;
let longest = false;
let httpOnly = false;
let secure = false;
/** Growing texts: the member at hand, its value, and what stays of the cookie. */
let member: usize = 0;
let value: usize = 0;
let cookieName: usize = 0;
let domain: usize = 0;
let sameSite: usize = 0;
let path: usize = 0;

/** Address of the description of the last `readDescription`; 0 where there is nothing but plain HTTP to say. */
export let description: usize = 0;

/** Reads a description that must be of the upstream `key`. False if it is none, or memory is short. */
export function readDescription(json: usize, length: u32, key: usize, keyLength: u32): bool {
  description = 0;
  transport = 0;
  lasts = -1;
  longest = httpOnly = secure = false;
  member = growing();
  value = growing();
  cookieName = growing();
  domain = growing();
  sameSite = growing();
  path = growing();
  let sound = member != 0 && value != 0 && cookieName != 0 && domain != 0 && sameSite != 0 && path != 0;
  if (sound) {
    startJson(json, length);
    sound = readUpstream(key, keyLength) && jsonEnded() && keep();
  }
  dropGrowing(member);
  dropGrowing(value);
  dropGrowing(cookieName);
  dropGrowing(domain);
  dropGrowing(sameSite);
  dropGrowing(path);
  return sound;
}

function memberIs(name: usize): bool {
  return isText(grownBytes(member), grownLength(member), name);
}

function valueIs(word: usize): bool {
  return isText(grownBytes(value), grownLength(value), word);
}

/** Members that must be there, as bits. */
const HAS_KEY: u32 = 1;
const HAS_DISPLAY: u32 = 2;
const HAS_TRANSPORT: u32 = 4;

function readUpstream(key: usize, keyLength: u32): bool {
  let seen: u32 = 0;
  if (!jsonByte(123)) return false;
  do {
    if (!jsonString(member) || !jsonByte(58)) return false;
    if (memberIs(KEY)) {
      if (!jsonString(value) || grownLength(value) != keyLength) return false;
      if (memory.compare(grownBytes(value), key, keyLength)) return false;
      seen |= HAS_KEY;
    } else if (memberIs(DISPLAY)) {
      if (!jsonString(value)) return false;
      seen |= HAS_DISPLAY;
    } else if (memberIs(TRANSPORT)) {
      if (!readTransport()) return false;
      seen |= HAS_TRANSPORT;
    } else if (memberIs(SESSION_COOKIE)) {
      if (!readCookie()) return false;
    } else if (!skipJson(value, 0)) return false;
  } while (jsonByte(44));
  return jsonByte(125) && seen == (HAS_KEY | HAS_DISPLAY | HAS_TRANSPORT);
}

function readTransport(): bool {
  if (!jsonByte(123)) return false;
  if (jsonByte(125)) return true;
  do {
    if (!jsonString(member) || !jsonByte(58)) return false;
    if (memberIs(TLS_NAME)) {
      let tls = jsonBoolean();
      if (tls < 0) return false;
      if (tls) transport |= TLS;
    } else if (memberIs(PROTOCOL)) {
      if (!jsonString(value)) return false;
      if (valueIs(GRPC_WORD)) transport |= GRPC;
      else if (!valueIs(HTTP_WORD)) return false;
    } else if (!skipJson(value, 0)) return false;
  } while (jsonByte(44));
  return jsonByte(125);
}

function readCookie(): bool {
  if (!jsonByte(123)) return false;
  do {
    if (!jsonString(member) || !jsonByte(58)) return false;
    let read = true;
    if (memberIs(NAME)) read = jsonString(cookieName);
    else if (memberIs(DOMAIN)) read = jsonString(domain);
    else if (memberIs(SAME_SITE)) read = jsonString(sameSite);
    else if (memberIs(COOKIE_PATH)) read = jsonString(path);
    else if (memberIs(EXPIRES)) {
      lasts = jsonNumber();
      if (lasts < 0) longest = read = jsonString(value) && valueIs(MAX);
    } else if (memberIs(HTTP_ONLY) || memberIs(SECURE)) {
      let on = jsonBoolean();
      if (memberIs(SECURE)) secure = on == 1;
      else httpOnly = on == 1;
      read = on >= 0;
    } else read = skipJson(value, 0);
    if (!read) return false;
  } while (jsonByte(44));
  return jsonByte(125) && grownLength(cookieName) > 0;
}

function put(into: usize, text: usize): void {
  putBytes(into, bytesOf(text), lengthOf(text));
}

/** The attributes behind the time, in NGINX's order. */
function attributes(into: usize): void {
  clearGrowing(into);
  if (longest) put(into, MAX_TEXT);
  if (grownLength(domain)) {
    put(into, DOMAIN_TEXT);
    putBytes(into, grownBytes(domain), grownLength(domain));
  }
  if (httpOnly) put(into, HTTP_ONLY_TEXT);
  if (secure) put(into, SECURE_TEXT);
  if (grownLength(sameSite)) {
    put(into, SAME_SITE_TEXT);
    // Strict, Lax and None in lower case.
    let first = grownBytes(sameSite);
    store<u8>(first, load<u8>(first) | 32);
    putBytes(into, first, grownLength(sameSite));
  }
  if (grownLength(path)) {
    put(into, PATH_TEXT);
    putBytes(into, grownBytes(path), grownLength(path));
  }
}

function keep(): bool {
  let nameLength = grownLength(cookieName);
  if (!transport && !nameLength) return true;
  attributes(value);
  let attributesLength = nameLength ? grownLength(value) : 0;
  let made = alloc(<u32>D_TEXTS + nameLength + attributesLength);
  if (!made) return false;
  store<u32>(made, transport, D_TRANSPORT);
  store<u32>(made, nameLength, D_NAME_LENGTH);
  store<u32>(made, attributesLength, D_ATTRIBUTES_LENGTH);
  store<i64>(made, lasts, D_LASTS);
  memory.copy(made + D_TEXTS, grownBytes(cookieName), nameLength);
  memory.copy(made + D_TEXTS + nameLength, grownBytes(value), attributesLength);
  description = made;
  return true;
}

/** Gives a description (0: none) back. */
export function dropDescription(made: usize): void {
  free(made);
}
