/** What may stand in a header that an object names. */
import { lower } from "../../../assembly/memory/bytes";
import { isFraming } from "./names";
import { take } from "./scratch";
import { ascii, beginsWith } from "./text";

const ENVOY = ascii("x-envoy-");
const OURS = ascii("x-njet-");

/** A name that `checkName` accepts: in lower case, for as long as the callback takes. */
export let checkedName: usize = 0;

function isTokenByte(c: u32): bool {
  if (c - 48 < 10 || (c | 32) - 97 < 26) return true;
  // ! # $ % & ' * + - . ^ _ ` | ~
  return (
    c == 33 || (c >= 35 && c <= 39) || c == 42 || c == 43 || c == 45 || c == 46 || c - 94 < 3 || c == 124 || c == 126
  );
}

/** True for a name that an object may change: a token that frames no message, and nothing that steers Envoy or this filter. */
export function checkName(name: usize, length: u32): bool {
  if (!length) return false;
  checkedName = take(length);
  if (!checkedName) return false;
  for (let i: u32 = 0; i < length; i++) {
    let c: u32 = load<u8>(name + i);
    if (!isTokenByte(c)) return false;
    store<u8>(checkedName + i, <u8>lower(c));
  }
  return (
    !isFraming(checkedName, length) && !beginsWith(checkedName, length, ENVOY) && !beginsWith(checkedName, length, OURS)
  );
}

/** A value that `cleanValue` has made safe. */
export let cleanStart: usize = 0;
export let cleanLength: u32 = 0;

/** Makes bytes safe as a value of a header, in place: control characters but tabs become blanks, and the ends are trimmed. */
export function cleanValue(at: usize, length: u32): void {
  for (let i: u32 = 0; i < length; i++) {
    let c: u32 = load<u8>(at + i);
    if ((c < 32 && c != 9) || c == 127) store<u8>(at + i, 32);
  }
  while (length && load<u8>(at) == 32) {
    at++;
    length--;
  }
  while (length && load<u8>(at + length - 1) == 32) length--;
  cleanStart = at;
  cleanLength = length;
}
