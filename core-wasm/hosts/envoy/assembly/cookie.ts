/** The Set-Cookie header that leads a client back to its peer. */
import { D_ATTRIBUTES_LENGTH, D_LASTS, D_NAME_LENGTH, D_TEXTS } from "./description";
import { putByte, putBytes, putHex, putNumber } from "./growing";
import { ascii, bytesOf, lengthOf } from "./text";

const EXPIRES = ascii("; expires=");
const MAX_AGE = ascii("; max-age=");
const GMT = ascii(" GMT");
const DAYS = ascii("SunMonTueWedThuFriSat");
const MONTHS = ascii("JanFebMarAprMayJunJulAugSepOctNovDec");
/** The last time that a date of four digits for the year can say, in seconds. */
const LAST_SECOND: u64 = 253402300799;

/** True for a cookie whose time begins anew with each answer, as NGINX has it. */
export function isRenewed(description: usize): bool {
  return load<i64>(description, D_LASTS) >= 0;
}

/** `NAME=SESSION` and its attributes. `now`: nanoseconds since the epoch. */
export function putCookie(into: usize, description: usize, session: u32, now: u64): void {
  let nameLength = load<u32>(description, D_NAME_LENGTH);
  putBytes(into, description + D_TEXTS, nameLength);
  putByte(into, 61);
  putHex(into, session, 8);
  let lasts = load<i64>(description, D_LASTS);
  if (lasts >= 0) {
    putBytes(into, bytesOf(EXPIRES), lengthOf(EXPIRES));
    putDate(into, min(LAST_SECOND, (now / 1000000 + <u64>lasts) / 1000));
    putBytes(into, bytesOf(MAX_AGE), lengthOf(MAX_AGE));
    putNumber(into, <u32>min(<u64>u32.MAX_VALUE, <u64>lasts / 1000));
  }
  putBytes(into, description + D_TEXTS + nameLength, load<u32>(description, D_ATTRIBUTES_LENGTH));
}

function putTwo(into: usize, number: u32): void {
  putByte(into, 48 + number / 10);
  putByte(into, 48 + (number % 10));
}

/** A time in seconds since the epoch as RFC 9110 5.6.7 has it: `Sun, 06 Nov 1994 08:49:37 GMT`. */
function putDate(into: usize, seconds: u64): void {
  let days = <u32>(seconds / 86400);
  let rest = <u32>(seconds % 86400);
  // The civil calendar with years that begin in March, so that the leap day is the last one; eras of 400 years.
  let shifted = days + 719468;
  let era = shifted / 146097;
  let dayOfEra = shifted % 146097;
  let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365;
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
  let shiftedMonth = (5 * dayOfYear + 2) / 153;
  let month = shiftedMonth < 10 ? shiftedMonth + 2 : shiftedMonth - 10;
  putBytes(into, bytesOf(DAYS) + ((days + 4) % 7) * 3, 3);
  putByte(into, 44);
  putByte(into, 32);
  putTwo(into, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1);
  putByte(into, 32);
  putBytes(into, bytesOf(MONTHS) + month * 3, 3);
  putByte(into, 32);
  putNumber(into, yearOfEra + era * 400 + (month < 2 ? 1 : 0));
  putByte(into, 32);
  putTwo(into, rest / 3600);
  putByte(into, 58);
  putTwo(into, (rest / 60) % 60);
  putByte(into, 58);
  putTwo(into, rest % 60);
  putBytes(into, bytesOf(GMT), lengthOf(GMT));
}
