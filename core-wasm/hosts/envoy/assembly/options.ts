/**
 * Options of the filter: the configuration of the VM, as lines `name=value`.
 *
 *   decide=SECRET       answers questions (question.ts) of who knows the secret; without it nobody can ask
 *   clusters=transport  the cluster says how peers are spoken to, and the peer comes from the core (the default)
 *   clusters=upstream   the cluster is that of the upstream, by its key
 */
import { alloc, free } from "../../../assembly/memory/heap";
import { getBuffer, givenBytes, givenLength, VM_CONFIGURATION } from "./host";
import { ascii, beginsWith, bytesOf, isText, lengthOf } from "./text";

const DECIDE = ascii("decide=");
const TRANSPORT = ascii("clusters=transport");
const UPSTREAM = ascii("clusters=upstream");
const LEAST_SECRET: u32 = 16;

/** u32 length | bytes; 0 where there is none. */
export let secret: usize = 0;
export let byUpstream = false;

/** Reads the options, `size` bytes. False for a line that is none. */
export function readOptions(size: u32): bool {
  free(secret);
  secret = 0;
  byUpstream = false;
  if (!size) return true;
  if (!getBuffer(VM_CONFIGURATION, 0, size)) return false;
  let at = givenBytes();
  let end = at + givenLength();
  while (at < end) {
    let stop = at;
    while (stop < end && load<u8>(stop) != 10) stop++;
    if (stop > at && !readOption(at, <u32>(stop - at))) return false;
    at = stop + 1;
  }
  return true;
}

function readOption(line: usize, length: u32): bool {
  if (isText(line, length, UPSTREAM)) {
    byUpstream = true;
    return true;
  }
  if (isText(line, length, TRANSPORT)) return true;
  let name = lengthOf(DECIDE);
  if (!beginsWith(line, length, DECIDE) || length - name < LEAST_SECRET) return false;
  secret = alloc(4 + length - name);
  if (!secret) return false;
  store<u32>(secret, length - name);
  memory.copy(bytesOf(secret), line + name, length - name);
  return true;
}

/** True if these bytes are the secret. Takes as long for every wrong one of its length. */
export function knowsSecret(at: usize, length: u32): bool {
  if (!secret || length != lengthOf(secret)) return false;
  let difference: u32 = 0;
  for (let i: u32 = 0; i < length; i++) difference |= load<u8>(at + i) ^ load<u8>(bytesOf(secret) + i);
  return !difference;
}
