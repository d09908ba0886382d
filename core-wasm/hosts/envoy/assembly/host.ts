/** Calls of the host, with what they give back. */
import {
  proxy_add_header_map_value,
  proxy_call_foreign_function,
  proxy_get_buffer_bytes,
  proxy_get_current_time_nanoseconds,
  proxy_get_header_map_pairs,
  proxy_get_header_map_value,
  proxy_get_property,
  proxy_log,
  proxy_remove_header_map_value,
  proxy_replace_header_map_value,
} from "./env";
import { bytesOf, lengthOf } from "./text";

export const REQUEST: u32 = 0;
export const RESPONSE: u32 = 2;

export const VM_CONFIGURATION: u32 = 6;
export const PLUGIN_CONFIGURATION: u32 = 7;

export const LOG_INFO: u32 = 2;
export const LOG_ERROR: u32 = 4;

/** Two words: address and length of what the last call gave. They also take a time, of 64 bits. */
const RESULT: usize = memory.data(8);

export function givenBytes(): usize {
  return load<u32>(RESULT);
}

export function givenLength(): u32 {
  return load<u32>(RESULT, 4);
}

/** True if the call is done; else there are zero bytes. */
function given(status: u32): bool {
  if (status || !load<u32>(RESULT)) store<u64>(RESULT, 0);
  return !status;
}

/** All headers of a map: u32 count, u32 lengths of each name and value, then each name and value with a zero byte behind it. */
export function getPairs(map: u32): bool {
  return given(proxy_get_header_map_pairs(map, RESULT, RESULT + 4));
}

export function getHeader(map: u32, name: usize): bool {
  return given(proxy_get_header_map_value(map, bytesOf(name), lengthOf(name), RESULT, RESULT + 4));
}

export function getProperty(path: usize): bool {
  return given(proxy_get_property(bytesOf(path), lengthOf(path), RESULT, RESULT + 4));
}

/** Bytes of a buffer from `start` on, at most `length`. */
export function getBuffer(buffer: u32, start: u32, length: u32): bool {
  return given(proxy_get_buffer_bytes(buffer, start, length, RESULT, RESULT + 4));
}

export function setHeader(map: u32, name: usize, value: usize, length: u32): void {
  proxy_replace_header_map_value(map, bytesOf(name), lengthOf(name), value, length);
}

export function setNamedHeader(map: u32, name: usize, nameLength: u32, value: usize, length: u32): void {
  proxy_replace_header_map_value(map, name, nameLength, value, length);
}

export function addNamedHeader(map: u32, name: usize, nameLength: u32, value: usize, length: u32): void {
  proxy_add_header_map_value(map, name, nameLength, value, length);
}

export function removeNamedHeader(map: u32, name: usize, nameLength: u32): void {
  proxy_remove_header_map_value(map, name, nameLength);
}

/** Calls a function of the host's own. False if it has none of this name, or refuses. */
export function callForeign(name: usize, argument: usize, length: u32): bool {
  return given(proxy_call_foreign_function(bytesOf(name), lengthOf(name), argument, length, RESULT, RESULT + 4));
}

/** Nanoseconds since the epoch. */
export function timeNow(): u64 {
  store<u64>(RESULT, 0);
  proxy_get_current_time_nanoseconds(RESULT);
  return load<u64>(RESULT);
}

export function log(level: u32, text: usize, length: u32): void {
  proxy_log(level, text, length);
}
