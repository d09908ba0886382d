/**
 * Where a request goes, for an ORIGINAL_DST cluster: in the state of the stream, which no upstream gets to see. A host that
 * has no such state (it is Envoy's own) is told by a header.
 */
import { callForeign, REQUEST, setHeader } from "./host";
import { PEER } from "./names";
import { take } from "./scratch";
import { ascii, bytesOf, lengthOf } from "./text";

const SET_STATE = ascii("set_envoy_filter_state");
/** What an ORIGINAL_DST cluster looks at first. */
const KEY = ascii("envoy.network.transport_socket.original_dst_address");
/** Field numbers of the function's argument, a message of protobuf: 1 key, 2 value; both texts. */
const FIELD_KEY: u32 = 10;
const FIELD_VALUE: u32 = 18;

/** Sends the request at hand to a peer, given as `ip:port`; its length is below 128. */
export function setDestination(peer: usize, length: u32): void {
  let keyLength = lengthOf(KEY);
  let size = 4 + keyLength + length;
  let argument = take(size);
  if (!argument) return;
  store<u8>(argument, <u8>FIELD_KEY);
  store<u8>(argument, <u8>keyLength, 1);
  memory.copy(argument + 2, bytesOf(KEY), keyLength);
  let value = argument + 2 + keyLength;
  store<u8>(value, <u8>FIELD_VALUE);
  store<u8>(value, <u8>length, 1);
  memory.copy(value + 2, peer, length);
  if (!callForeign(SET_STATE, argument, size)) setHeader(REQUEST, PEER, peer, length);
}
