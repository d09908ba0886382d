/** Answers of the filter itself: redirects, bodies, error pages. */
import { pad4, TAG_ERROR_HEADER, TAG_ERROR_REDIRECT, TAG_ERROR_RETURN } from "../../../assembly/image/layout";
import { proxy_send_local_response } from "./env";
import { clearGrowing, extend, growing, grownBytes, grownLength, putBytes } from "./growing";
import { checkedName, checkName, cleanLength, cleanStart, cleanValue } from "./header-text";
import { CONTENT_TYPE, LOCATION } from "./names";
import { take } from "./scratch";
import { FLAG_ALWAYS, K_FLAGS, K_NAME, K_NAME_LENGTH, K_TAG, K_VALUE_LENGTH, TAG_ADD_RESPONSE } from "./settings";
import { ascii, bytesOf, decimal, lengthOf } from "./text";

/** What Envoy's log says of an answer of the filter (response code details). */
const DETAILS = ascii("njet_kic");

/** Headers of the answer that is being made: lengths of name and value as words, and the bytes as a header map has them. */
const lengths = growing();
const texts = growing();

export function startAnswer(): void {
  clearGrowing(lengths);
  clearGrowing(texts);
}

/** Adds a header; its value is made safe in the copy. One that comes out empty is left out. */
export function addHeader(name: usize, nameLength: u32, value: usize, valueLength: u32): void {
  let copy = take(valueLength);
  if (!copy) return;
  memory.copy(copy, value, valueLength);
  cleanValue(copy, valueLength);
  if (!cleanLength) return;
  let sizes = extend(lengths, 8);
  if (!sizes) return;
  store<u32>(sizes, nameLength);
  store<u32>(sizes, cleanLength, 4);
  putBytes(texts, name, nameLength);
  zeroByte();
  putBytes(texts, cleanStart, cleanLength);
  zeroByte();
}

function zeroByte(): void {
  let at = extend(texts, 1);
  if (at) store<u8>(at, 0);
}

/** Sends the answer with the headers that were added. The request goes no further. */
export function sendAnswer(status: u32, body: usize, length: u32): void {
  let count = grownLength(lengths) >> 3;
  let size = 4 + grownLength(lengths) + grownLength(texts);
  let map = count ? take(size) : 0;
  if (map) {
    store<u32>(map, count);
    memory.copy(map + 4, grownBytes(lengths), grownLength(lengths));
    memory.copy(map + 4 + grownLength(lengths), grownBytes(texts), grownLength(texts));
  }
  proxy_send_local_response(status, bytesOf(DETAILS), lengthOf(DETAILS), body, length, map, map ? size : 0, -1);
}

/** Statuses that get headers without "always", as NGINX's add_header has them. */
export function isPlainStatus(status: u32): bool {
  if (status == 200 || status == 201 || status == 204 || status == 206) return true;
  return (status >= 301 && status <= 304) || status == 307 || status == 308;
}

/** Adds the headers that kept settings have for an answer with this status. */
export function addKeptHeaders(kept: usize, status: u32): void {
  let end = grownBytes(kept) + grownLength(kept);
  for (let at = grownBytes(kept); at < end; at = nextKept(at)) {
    if (load<u32>(at, K_TAG) == TAG_ADD_RESPONSE) addKept(at, status);
  }
}

function addKept(at: usize, status: u32): void {
  if (!(load<u32>(at, K_FLAGS) & FLAG_ALWAYS) && !isPlainStatus(status)) return;
  let length = load<u32>(at, K_NAME_LENGTH);
  if (checkName(at + K_NAME, length)) addHeader(checkedName, length, keptValue(at), load<u32>(at, K_VALUE_LENGTH));
}

export function keptValue(at: usize): usize {
  return at + K_NAME + pad4(load<u32>(at, K_NAME_LENGTH));
}

export function nextKept(at: usize): usize {
  return keptValue(at) + pad4(load<u32>(at, K_VALUE_LENGTH));
}

/** Sends the error page that stands for `status`, if there is one: the first that lists it. */
export function sendErrorPage(kept: usize, status: u32): bool {
  let end = grownBytes(kept) + grownLength(kept);
  for (let at = grownBytes(kept); at < end; at = nextKept(at)) {
    let tag = load<u32>(at, K_TAG);
    if ((tag == TAG_ERROR_RETURN || tag == TAG_ERROR_REDIRECT) && listsStatus(at, status)) {
      sendPage(at, end, tag, status);
      return true;
    }
  }
  return false;
}

/** Of the name of a page, `STATUS CODES TYPE`: where the codes begin, and where the type does. */
let codes: usize = 0;
let type: usize = 0;
let pageStatus: u32 = 0;

function splitName(at: usize): bool {
  let name = at + K_NAME;
  let end = name + load<u32>(at, K_NAME_LENGTH);
  codes = name;
  while (codes < end && load<u8>(codes) != 32) codes++;
  if (codes == end) return false;
  pageStatus = decimal(name, <u32>(codes - name), 1000);
  codes++;
  type = codes;
  while (type < end && load<u8>(type) != 32) type++;
  return pageStatus < 1000;
}

function listsStatus(at: usize, status: u32): bool {
  if (!splitName(at)) return false;
  for (let code = codes; code + 3 <= type; code += 4) if (decimal(code, 3, 0) == status) return true;
  return false;
}

function sendPage(at: usize, end: usize, tag: u32, status: u32): void {
  startAnswer();
  let value = keptValue(at);
  let length = load<u32>(at, K_VALUE_LENGTH);
  if (tag == TAG_ERROR_REDIRECT) {
    addHeader(bytesOf(LOCATION), lengthOf(LOCATION), value, length);
    sendAnswer(pageStatus, 0, 0);
    return;
  }
  let nameEnd = at + K_NAME + load<u32>(at, K_NAME_LENGTH);
  if (type < nameEnd) addHeader(bytesOf(CONTENT_TYPE), lengthOf(CONTENT_TYPE), type + 1, <u32>(nameEnd - type - 1));
  for (let next = nextKept(at); next < end && load<u32>(next, K_TAG) == TAG_ERROR_HEADER; next = nextKept(next)) {
    let nameLength = load<u32>(next, K_NAME_LENGTH);
    if (checkName(next + K_NAME, nameLength)) {
      addHeader(checkedName, nameLength, keptValue(next), load<u32>(next, K_VALUE_LENGTH));
    }
  }
  sendAnswer(pageStatus ? pageStatus : status, value, length);
}
