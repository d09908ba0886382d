/**
 * Settings of a decision (ABI.md, "Settings"): those of the request are carried out at once, those of the answer are kept
 * until there is one, with their texts filled in.
 *
 * Kept: u32 tag | u32 flags | u32 length of the name | u32 length of the value | name, value, padded to 4. A session cookie
 * has the tag 0.
 */

import { pad4, SETTING_HEADER, TAG_ERROR_HEADER, TAG_ERROR_RETURN } from "../../../assembly/image/layout";
import { render_setting } from "../../../assembly/index";
import { D_RENDERED, D_SETTINGS, D_SETTINGS_LENGTH } from "../../../assembly/table/context";
import { extend, putBytes, putWord } from "./growing";
import { checkedName, checkName, cleanLength, cleanStart, cleanValue } from "./header-text";
import { REQUEST, removeNamedHeader, setNamedHeader } from "./host";
import { AUTHORITY, HOST } from "./names";
import { firstPair, nextPair, pairName, pairNameLength } from "./request";
import { ascii, beginsWith, bytesOf, isText, lengthOf } from "./text";

export const TAG_SET_REQUEST: u32 = 1;
export const TAG_DROP_REQUEST: u32 = 2;
export const TAG_ADD_RESPONSE: u32 = 3;
export const TAG_HIDE_RESPONSE: u32 = 4;
export const TAG_COOKIE: u32 = 0;
export const FLAG_ALWAYS: u32 = 1;
const TAG_MASK: u32 = 0x7fff;

export const K_TAG: usize = 0;
export const K_FLAGS: usize = 4;
export const K_NAME_LENGTH: usize = 8;
export const K_VALUE_LENGTH: usize = 12;
export const K_NAME: usize = 16;

const FORWARDED = ascii("x-forwarded-");
const ENVOY = ascii("x-envoy-");
const OURS = ascii("x-njet-");
const REQUEST_ID = ascii("x-request-id");
const CONTENT_LENGTH = ascii("content-length");
const TRANSFER_ENCODING = ascii("transfer-encoding");
const TE = ascii("te");
const CONNECTION = ascii("connection");
const UPGRADE = ascii("upgrade");

/** A setting at hand: set by `nextSetting`. */
let at: usize = 0;
let end: usize = 0;
let index: u32 = 0;
export let tag: u32 = 0;
export let flags: u32 = 0;
export let name: usize = 0;
export let nameLength: u32 = 0;

export function firstSetting(context: usize): void {
  at = load<u32>(context, D_SETTINGS);
  end = at + load<u32>(context, D_SETTINGS_LENGTH);
  index = 0;
}

/** Goes on to the next setting. False after the last one. */
export function nextSetting(): bool {
  if (at >= end) return false;
  tag = load<u16>(at) & TAG_MASK;
  flags = load<u16>(at, 2);
  let size = load<u32>(at, 4);
  let value = at + SETTING_HEADER;
  nameLength = size >= 4 ? load<u32>(value) : 0;
  name = value + 4;
  at = value + size;
  index++;
  return true;
}

/** True for a setting whose value is a template. */
export function hasValue(): bool {
  return tag == TAG_SET_REQUEST || tag == TAG_ADD_RESPONSE || (tag >= TAG_ERROR_RETURN && tag <= TAG_ERROR_HEADER);
}

/** Fills in the value of the setting at hand; its length. It is at the context's "rendered" until the next decision. */
export function renderValue(context: usize): u32 {
  return <u32>max(render_setting(context, index - 1), 0);
}

/** Carries out what is to be done to the request, and keeps what is to be done to the answer. */
export function applySettings(context: usize, kept: usize): void {
  let dropped = false;
  firstSetting(context);
  while (nextSetting()) {
    if (tag == TAG_DROP_REQUEST) dropped = true;
  }
  // First, whatever the order: what is set stays.
  if (dropped) dropRequestHeaders();
  firstSetting(context);
  while (nextSetting()) {
    if (tag == TAG_SET_REQUEST) setRequestHeader(context);
    else keepSetting(context, kept);
  }
}

/** Keeps the setting at hand if it is about the answer. */
export function keepSetting(context: usize, kept: usize): void {
  if (tag == TAG_HIDE_RESPONSE) keep(kept, tag, flags, name, nameLength, 0, 0);
  else if (tag != TAG_SET_REQUEST && hasValue()) {
    let length = renderValue(context);
    keep(kept, tag, flags, name, nameLength, load<u32>(context, D_RENDERED), length);
  }
}

export function keep(
  kept: usize,
  tag: u32,
  flags: u32,
  name: usize,
  nameLength: u32,
  value: usize,
  valueLength: u32,
): void {
  putWord(kept, tag);
  putWord(kept, flags);
  putWord(kept, nameLength);
  putWord(kept, valueLength);
  putPadded(kept, name, nameLength);
  putPadded(kept, value, valueLength);
}

function putPadded(kept: usize, bytes: usize, length: u32): void {
  putBytes(kept, bytes, length);
  extend(kept, pad4(length) - length);
}

function setRequestHeader(context: usize): void {
  let length = renderValue(context);
  if (!checkName(name, nameLength)) return;
  cleanValue(load<u32>(context, D_RENDERED), length);
  if (isText(checkedName, nameLength, HOST)) {
    // An HTTP request has a host, also where an object would have it empty.
    if (cleanLength) setNamedHeader(REQUEST, bytesOf(AUTHORITY), lengthOf(AUTHORITY), cleanStart, cleanLength);
  } else if (cleanLength) setNamedHeader(REQUEST, checkedName, nameLength, cleanStart, cleanLength);
  else removeNamedHeader(REQUEST, checkedName, nameLength);
}

/** Takes the client's headers away, but for what frames the request, and for what Envoy says of it. */
function dropRequestHeaders(): void {
  firstPair();
  while (nextPair()) {
    if (load<u8>(pairName) == 58 || isKept(pairName, pairNameLength)) continue;
    removeNamedHeader(REQUEST, pairName, pairNameLength);
  }
}

function isKept(name: usize, length: u32): bool {
  if (beginsWith(name, length, FORWARDED) || beginsWith(name, length, ENVOY) || beginsWith(name, length, OURS)) {
    return true;
  }
  return (
    isText(name, length, REQUEST_ID) ||
    isText(name, length, CONTENT_LENGTH) ||
    isText(name, length, TRANSFER_ENCODING) ||
    isText(name, length, TE) ||
    isText(name, length, CONNECTION) ||
    isText(name, length, UPGRADE)
  );
}
