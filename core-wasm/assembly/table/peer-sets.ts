/** The peer sets of upstreams: each is replaced whole. */
import { I_KEY, I_KEY_LENGTH, I_TEMPLATE, I_TEMPLATE_LENGTH, peersOf } from "../balance/peer-set-layout";
import { peerSetValidate } from "../balance/peer-set-validate";
import { validateKey } from "../image/validate";
import { alloc, free, inMemory } from "../memory/heap";
import { E_MEMORY, E_POINTER, OK } from "../status";
import { loadedSize, moveSlots, noteTrouble, reserveSlots } from "./peer-slots";
import { freeHandle, H_ALLOCATION, H_UPSTREAM_COUNT, HANDLE_SIZE, retire } from "./shards";
import { isTable, T_ANY, T_DEFAULT, T_SHARDS, T_UPSTREAMS } from "./table";
import { U_PEERS, U_REFERENCES } from "./upstream-record";
import { dropIfUnused, findUpstream, recordFor, releaseUpstream } from "./upstreams";

/** The end of a handle, in front of a loaded set. */
const SET_HEADER: u32 = 16;

/** The handle of the peer set of an upstream; 0 where it has none. */
function handleOf(record: usize): usize {
  let image: usize = load<u32>(record, U_PEERS);
  return image ? image - HANDLE_SIZE : 0;
}

/** Gives an upstream another peer set (0: none). */
function replacePeers(table: usize, record: usize, image: usize): void {
  let old = handleOf(record);
  moveSlots(table, record, image);
  store<u32>(record, <u32>image, U_PEERS);
  retire(table, old);
}

/** Validates a peer set image, copies it and puts it in the place of the one that its upstream has. */
export function loadPeers(table: usize, image: usize, length: u32): i32 {
  if (!isTable(table) || !inMemory(image, length)) return E_POINTER;
  let status = peerSetValidate(image, length);
  if (status != OK) return status;
  status = validateKey(image + load<u32>(image, I_TEMPLATE), load<u32>(image, I_TEMPLATE_LENGTH));
  if (status != OK) return status;
  let block = alloc(SET_HEADER + loadedSize(image));
  if (!block) return E_MEMORY;
  let copy = block + SET_HEADER;
  memory.copy(copy, image, length);
  store<u32>(copy - HANDLE_SIZE, 0, H_UPSTREAM_COUNT);
  store<u32>(copy - HANDLE_SIZE, <u32>block, H_ALLOCATION);
  let record = recordFor(table, copy + load<u32>(copy, I_KEY), load<u32>(copy, I_KEY_LENGTH));
  status = record ? reserveSlots(table, peersOf(copy)) : E_MEMORY;
  if (status != OK) {
    free(block);
    if (record) dropIfUnused(table, record);
    return status;
  }
  replacePeers(table, record, copy);
  noteTrouble(table, record);
  return OK;
}

/** Takes the peers of an upstream away. OK also if it has none. */
export function unloadPeers(table: usize, key: usize, length: u32): i32 {
  if (!isTable(table) || !inMemory(key, length)) return E_POINTER;
  let record = findUpstream(table, key, length);
  if (!record) return OK;
  // Held meanwhile: a shard that is freed now may be the last that names the upstream.
  store<u32>(record, load<u32>(record, U_REFERENCES) + 1, U_REFERENCES);
  replacePeers(table, record, 0);
  releaseUpstream(table, record);
  return OK;
}

/** Frees every shard and peer set. Contexts must be gone. */
export function clearTable(table: usize): void {
  freeHandle(table, load<u32>(table, T_ANY));
  freeHandle(table, load<u32>(table, T_DEFAULT));
  let slot: usize = load<u32>(table, T_SHARDS);
  for (let left = load<u32>(table, T_SHARDS + 4) + 1; left; left--, slot += 8) freeHandle(table, load<u32>(slot, 4));
  retire(table, 0);
  // Those that are left have peers.
  slot = load<u32>(table, T_UPSTREAMS);
  for (let left = load<u32>(table, T_UPSTREAMS + 4) + 1; left; left--, slot += 8) {
    let record: usize = load<u32>(slot, 4);
    if (!record) continue;
    freeHandle(table, handleOf(record));
    free(record);
  }
}
