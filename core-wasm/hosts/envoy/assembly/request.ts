/** The request at hand: its headers as the host gives them, and what the core asks for. */
import { FACT_ADDRESS, FACT_METHOD, FACT_PORT, FACT_PROTOCOL } from "../../../assembly/image/layout";
import { sameBytes } from "../../../assembly/memory/bytes";
import { NEED_SIZE, X_NEED_COUNT, X_NEEDS } from "../../../assembly/table/context";
import { getPairs, getProperty, givenBytes, givenLength, REQUEST } from "./host";
import {
  AUTHORITY,
  COOKIE,
  DECIDE,
  HOST,
  HTTP_2,
  HTTP_2_0,
  HTTP_3,
  HTTP_3_0,
  HTTPS,
  METHOD,
  PATH,
  PROTOCOL,
  REQUEST_PROTOCOL,
  SCHEME,
  SOURCE,
  SOURCE_ADDRESS,
} from "./names";
import { take } from "./scratch";
import { bytesOf, isText, lengthOf } from "./text";

/** Header map: u32 count | u32 length of name, of value, for each | each name and value with a zero byte behind it. */
let pairs: usize = 0;
/** The headers come from a question, not from the host, and so do facts of the connection. */
let asked = false;

export let host: usize = 0;
export let hostLength: u32 = 0;
export let target: usize = 0;
export let targetLength: u32 = 0;
export let https = false;
/** Value of the header that asks a question; 0 if there is none. */
export let question: usize = 0;
export let questionLength: u32 = 0;

/** A pair at hand: set by `nextPair`. */
let left: u32 = 0;
let lengths: usize = 0;
let following: usize = 0;
export let pairName: usize = 0;
export let pairNameLength: u32 = 0;
export let pairValue: usize = 0;
export let pairValueLength: u32 = 0;

export function firstPair(): void {
  left = pairs ? load<u32>(pairs) : 0;
  lengths = pairs + 4;
  following = lengths + ((<usize>left) << 3);
}

/** Goes on to the next pair. False after the last one. */
export function nextPair(): bool {
  if (!left) return false;
  left--;
  pairName = following;
  pairNameLength = load<u32>(lengths);
  pairValue = pairName + pairNameLength + 1;
  pairValueLength = load<u32>(lengths, 4);
  lengths += 8;
  following = pairValue + pairValueLength + 1;
  return true;
}

/** Takes the headers of the request from the host. False if it gives none. */
export function readRequest(): bool {
  asked = false;
  if (!getPairs(REQUEST)) return false;
  pairs = givenBytes();
  survey();
  return true;
}

/** Takes the headers, in the form of a header map, from a question. False if the bytes are no such map. */
export function readAsked(map: usize, length: u32): bool {
  if (length < 4) return false;
  let end = <u64>map + <u64>length;
  let at = <u64>map + 4 + ((<u64>load<u32>(map)) << 3);
  if (at > end) return false;
  for (let i: u32 = 0; i < load<u32>(map); i++) {
    let sizes = map + 4 + ((<usize>i) << 3);
    at += <u64>load<u32>(sizes) + <u64>load<u32>(sizes, 4) + 2;
    if (at > end) return false;
  }
  asked = true;
  pairs = map;
  survey();
  return true;
}

/** Finds what every decision looks at. */
function survey(): void {
  host = target = question = 0;
  hostLength = targetLength = questionLength = 0;
  https = false;
  firstPair();
  while (nextPair()) {
    if (load<u8>(pairName) == 58) {
      if (isText(pairName, pairNameLength, AUTHORITY)) {
        host = pairValue;
        hostLength = pairValueLength;
      } else if (isText(pairName, pairNameLength, PATH)) {
        target = pairValue;
        targetLength = pairValueLength;
      } else if (isText(pairName, pairNameLength, SCHEME)) https = isText(pairValue, pairValueLength, HTTPS);
    } else if (isText(pairName, pairNameLength, DECIDE)) {
      question = pairValue;
      questionLength = pairValueLength;
    }
  }
}

/** The value that `find` has found. */
let value: usize = 0;
let valueLength: i32 = -1;

/** Finds a header by its lower-case name; repeated ones are joined, as the core wants them. */
function find(name: usize, length: u32): void {
  value = 0;
  valueLength = -1;
  let count: u32 = 0;
  let size: u32 = 0;
  firstPair();
  while (nextPair()) {
    if (pairNameLength != length || !sameBytes(pairName, name, length)) continue;
    if (!count++) value = pairValue;
    size += pairValueLength;
    valueLength = <i32>pairValueLength;
  }
  if (count > 1) joinAll(name, length, size + (count - 1) * 2);
}

function joinAll(name: usize, length: u32, size: u32): void {
  let at = take(size);
  value = at;
  valueLength = at ? <i32>size : -1;
  if (!at) return;
  let mark: u16 = isText(name, length, COOKIE) ? 0x203b : 0x202c;
  let begun = false;
  firstPair();
  while (nextPair()) {
    if (pairNameLength != length || !sameBytes(pairName, name, length)) continue;
    if (begun) {
      store<u16>(at, mark);
      at += 2;
    }
    begun = true;
    memory.copy(at, pairValue, pairValueLength);
    at += pairValueLength;
  }
}

/** `ip:port`, `[ip]:port`, or the path of a socket. */
function findSource(): void {
  if (asked) find(bytesOf(SOURCE), lengthOf(SOURCE));
  else {
    getProperty(SOURCE_ADDRESS);
    value = givenBytes();
    valueLength = <i32>givenLength();
  }
}

/** Leaves the address, or the port, of the source; a source without a port is all address. */
function findSourcePart(port: bool): void {
  findSource();
  let length = max(valueLength, 0);
  let colon = length;
  while (colon && load<u8>(value + colon - 1) != 58) colon--;
  if (port) {
    if (!colon) length = 0;
    value += colon;
    valueLength = length - colon;
    return;
  }
  if (colon) length = colon - 1;
  if (length > 1 && load<u8>(value) == 91) {
    value++;
    length -= 2;
  }
  valueLength = length;
}

/** The protocol as the core and NGINX name it. */
function findProtocol(): void {
  if (asked) {
    find(bytesOf(PROTOCOL), lengthOf(PROTOCOL));
    return;
  }
  getProperty(REQUEST_PROTOCOL);
  value = givenBytes();
  valueLength = <i32>givenLength();
  let longer = isText(value, valueLength, HTTP_2) ? HTTP_2_0 : isText(value, valueLength, HTTP_3) ? HTTP_3_0 : 0;
  if (!longer) return;
  value = bytesOf(longer);
  valueLength = <i32>lengthOf(longer);
}

function findNeed(id: u32): void {
  if (id == FACT_ADDRESS || id == FACT_PORT) findSourcePart(id == FACT_PORT);
  else if (id == FACT_METHOD) find(bytesOf(METHOD), lengthOf(METHOD));
  else if (id == FACT_PROTOCOL) findProtocol();
  else {
    let name: usize = id;
    // The host of HTTP/1 reaches a filter as that of HTTP/2.
    if (!asked && isText(bytesOf(name), lengthOf(name), HOST)) name = AUTHORITY;
    find(bytesOf(name), lengthOf(name));
  }
}

/** Fills in what the core asks for. The values last until the next callback. */
export function fillIn(context: usize): void {
  let count = load<u32>(context, X_NEED_COUNT);
  let need: usize = load<u32>(context, X_NEEDS);
  for (; count; count--, need += NEED_SIZE) {
    findNeed(load<u32>(need));
    if (valueLength < 0) continue;
    store<u32>(need, <u32>value, 4);
    store<i32>(need, valueLength, 8);
  }
}
