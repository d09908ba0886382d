/** Loads a bundle (core-wasm/BUNDLE.md) from the plugin configuration into a table. It is taken whole or refused whole. */
import { crc32 } from "../../../assembly/balance/crc32";
import { I_KEY, I_KEY_LENGTH, I_MAX_FAILS } from "../../../assembly/balance/peer-set-layout";
import {
  PATTERN_ANY_HOST,
  PATTERN_ANY_LABELS,
  PATTERN_DEFAULT,
  PATTERN_EXACT,
  pad4,
  S_HEADER_SIZE,
  S_HOST_LENGTH,
  S_PATTERN,
} from "../../../assembly/image/layout";
import { sameBytes } from "../../../assembly/memory/bytes";
import { OK } from "../../../assembly/status";
import { loadPeers } from "../../../assembly/table/peer-sets";
import { loadShard } from "../../../assembly/table/shards";
import { U_PEERS } from "../../../assembly/table/upstream-record";
import { findUpstream } from "../../../assembly/table/upstreams";
import { closeConfiguration, configurationAt, isAllRead, isDamaged, openConfiguration } from "./configuration";
import { description, dropDescription, readDescription } from "./description";
import { clearGrowing, dropGrowing, growing, grownBytes, grownLength, putBytes } from "./growing";
import { ascii, bytesOf, isText, lengthOf } from "./text";
import { mapSet } from "./word-map";

const MAGIC: u32 = 0x424b4a4e;
const MAJOR: u32 = 1;
const HEADER: u32 = 24;
const RECORD: u32 = 12;
const KIND_SHARD: u32 = 1;
const KIND_PEERS: u32 = 2;
const KIND_UPSTREAM: u32 = 3;

const NO_BUNDLE = ascii("there is no bundle in the configuration of the plugin");
const TRUNCATED = ascii("it is shorter than it says");
const NOT_A_BUNDLE = ascii("these bytes are no bundle");
const VERSION = ascii("its format version is another one");
const LENGTH = ascii("its length is not what it says");
const CHECKSUM = ascii("its bytes do not fit its checksum");
const RECORDS = ascii("a record has a wrong length, kind or padding");
const ORDER = ascii("its records are not in order");
const IMAGE = ascii("the core refuses an image");
const WRONG_KEY = ascii("the image of a record is that of another key");
const DESCRIPTION = ascii("an upstream has no sound description");
const PACKING = ascii("it is packed in a wrong way");
const MEMORY = ascii("memory is short");
const DEFAULT_KEY = ascii("(default)");
const ANY_LABELS = ascii("**.");
const ONE_LABEL = ascii("*.");

/** What the last `loadBundle` has found: numbers of records, and whether peers are taken out for failures. */
export let shardCount: u32 = 0;
export let peerSetCount: u32 = 0;
export let countsFailures = false;
export let checksum: u32 = 0;
/** Bytes of the bundle. */
export let bundleSize: u32 = 0;
/** Where it was refused: the record, and the status of the core. */
export let refusedRecord: u32 = 0;
export let refusedStatus: i32 = 0;

/**
 * Reads the `size` bytes of the plugin configuration into an empty table. `descriptions` gets what there is to say of an
 * upstream, by the address of its peer set. Answers 0, or the text of why it is refused.
 */
export function loadBundle(size: u32, table: usize, descriptions: usize): usize {
  shardCount = 0;
  peerSetCount = 0;
  countsFailures = false;
  refusedRecord = 0;
  refusedStatus = 0;
  bundleSize = openConfiguration(size);
  let before = growing();
  let why = before ? readBundle(bundleSize, table, descriptions, before) : MEMORY;
  if (isDamaged || (!why && !isAllRead())) why = PACKING;
  dropGrowing(before);
  closeConfiguration();
  return why;
}

function readBundle(size: u32, table: usize, descriptions: usize, before: usize): usize {
  if (!size) return NO_BUNDLE;
  if (size < HEADER) return TRUNCATED;
  let header = configurationAt(0, HEADER);
  if (!header) return MEMORY;
  if (load<u32>(header) != MAGIC) return NOT_A_BUNDLE;
  if (load<u16>(header, 4) != <u16>MAJOR) return VERSION;
  if (load<u32>(header, 12) > size) return TRUNCATED;
  if (load<u32>(header, 12) != size || load<u32>(header, 20)) return LENGTH;
  let count = load<u32>(header, 8);
  checksum = load<u32>(header, 16);
  let sum: u32 = 0;
  let at = HEADER;
  for (refusedRecord = 0; refusedRecord < count; refusedRecord++) {
    let length = recordLength(at, size);
    if (!length) return RECORDS;
    let record = configurationAt(at, length);
    if (!record) return MEMORY;
    sum = crc32(sum, record, length);
    let why = readRecord(record, table, descriptions, before);
    if (why) return why;
    at += length;
  }
  // What is left over would be in the checksum as well.
  if (at != size) return LENGTH;
  return sum == checksum ? 0 : CHECKSUM;
}

/** Bytes of the record at `at` with its padding; 0 if the bundle has no room for it. */
function recordLength(at: u32, size: u32): u32 {
  if (size - at < RECORD) return 0;
  let head = configurationAt(at, RECORD);
  if (!head) return 0;
  let keyLength = <u64>load<u32>(head, 4);
  let length = <u64>RECORD + ((keyLength + 3) & ~3) + ((<u64>load<u32>(head, 8) + 3) & ~3);
  return length <= <u64>(size - at) ? <u32>length : 0;
}

function isPadded(at: usize, length: u32): bool {
  for (let i = length; i & 3; i++) if (load<u8>(at + i)) return false;
  return true;
}

/** Reads a record that is in memory as a whole. `before` holds kind and key of the one before it. */
function readRecord(record: usize, table: usize, descriptions: usize, before: usize): usize {
  let kind = load<u32>(record);
  let keyLength = load<u32>(record, 4);
  let length = load<u32>(record, 8);
  let key = record + RECORD;
  let content = key + pad4(keyLength);
  if (!kind || kind > 255 || !isPadded(key, keyLength) || !isPadded(content, length)) return RECORDS;
  if (grownLength(before) && comparedKeys(before, record) >= 0) return ORDER;
  clearGrowing(before);
  putBytes(before, record, RECORD + keyLength);
  if (grownLength(before) != RECORD + keyLength) return MEMORY;
  if (kind == KIND_SHARD) {
    refusedStatus = loadShard(table, content, length, false);
    if (refusedStatus != OK) return IMAGE;
    shardCount++;
    return isPattern(key, keyLength, content) ? 0 : WRONG_KEY;
  }
  if (kind == KIND_PEERS) return readPeers(table, key, keyLength, content, length);
  if (kind != KIND_UPSTREAM) return 0;
  if (!readDescription(content, length, key, keyLength)) return DESCRIPTION;
  let upstream = findUpstream(table, key, keyLength);
  let peers = upstream ? load<u32>(upstream, U_PEERS) : 0;
  // Of an upstream without peers nobody asks.
  if (!peers) dropDescription(description);
  else if (description && !mapSet(descriptions, peers, <u32>description)) {
    dropDescription(description);
    return MEMORY;
  }
  return 0;
}

function readPeers(table: usize, key: usize, keyLength: u32, image: usize, length: u32): usize {
  refusedStatus = loadPeers(table, image, length);
  if (refusedStatus != OK) return IMAGE;
  peerSetCount++;
  if (load<u32>(image, I_MAX_FAILS)) countsFailures = true;
  if (load<u32>(image, I_KEY_LENGTH) != keyLength) return WRONG_KEY;
  return sameBytes(image + load<u32>(image, I_KEY), key, keyLength) ? 0 : WRONG_KEY;
}

/** Below 0 where `before` (kind, two lengths, key) comes before `record`, which has the same parts. */
function comparedKeys(before: usize, record: usize): i32 {
  let old = grownBytes(before);
  if (load<u32>(old) != load<u32>(record)) return load<u32>(old) < load<u32>(record) ? -1 : 1;
  let a = load<u32>(old, 4);
  let b = load<u32>(record, 4);
  let order = memory.compare(old + RECORD, record + RECORD, min(a, b));
  return order ? order : a < b ? -1 : a > b ? 1 : 0;
}

/** True if a key is the text of the host pattern of an image that the core has accepted. */
function isPattern(key: usize, length: u32, image: usize): bool {
  let kind = load<u32>(image, S_PATTERN);
  if (kind == PATTERN_ANY_HOST) return !length;
  if (kind == PATTERN_DEFAULT) return isText(key, length, DEFAULT_KEY);
  if (kind != PATTERN_EXACT) {
    let mark = kind == PATTERN_ANY_LABELS ? ANY_LABELS : ONE_LABEL;
    if (length < lengthOf(mark) || !sameBytes(key, bytesOf(mark), lengthOf(mark))) return false;
    key += lengthOf(mark);
    length -= lengthOf(mark);
  }
  return load<u32>(image, S_HOST_LENGTH) == length && sameBytes(key, image + S_HEADER_SIZE, length);
}

/** Writes the text of the host pattern of an image. */
export function putPattern(into: usize, image: usize): void {
  let kind = load<u32>(image, S_PATTERN);
  if (kind == PATTERN_DEFAULT) putBytes(into, bytesOf(DEFAULT_KEY), lengthOf(DEFAULT_KEY));
  if (kind >= PATTERN_ANY_HOST) return;
  let mark = kind == PATTERN_ANY_LABELS ? ANY_LABELS : ONE_LABEL;
  if (kind != PATTERN_EXACT) putBytes(into, bytesOf(mark), lengthOf(mark));
  putBytes(into, image + S_HEADER_SIZE, load<u32>(image, S_HOST_LENGTH));
}
