/** The plugin configuration, read a part at a time: a bundle may be large, and need not be in memory as a whole. */
import { alloc, free } from "../../../assembly/memory/heap";
import { getBuffer, givenBytes, givenLength, PLUGIN_CONFIGURATION } from "./host";
import { landAt, takeBack } from "./scratch";

const WINDOW: u32 = 1 << 18;

let total: u32 = 0;
let room: usize = 0;
let roomSize: u32 = 0;
/** What is in memory: `windowLength` bytes from `windowAt` on. */
let windowAt: u32 = 0;
let windowLength: u32 = 0;
let windowBytes: usize = 0;

export function openConfiguration(size: u32): void {
  total = size;
  windowLength = 0;
}

export function closeConfiguration(): void {
  free(room);
  room = 0;
  roomSize = 0;
  windowLength = 0;
}

/** Address of `length` bytes from `at` on, until the next call; 0 if they are not there, or memory is short. */
export function configurationAt(at: u32, length: u32): usize {
  if (at > total || length > total - at) return 0;
  if (at < windowAt || at - windowAt > windowLength || length > windowLength - (at - windowAt)) {
    if (!moveWindow(at, min(total - at, max(length, WINDOW)))) return 0;
  }
  return windowBytes + (at - windowAt);
}

function moveWindow(at: u32, length: u32): bool {
  windowLength = 0;
  if (length > roomSize) {
    free(room);
    room = alloc(length);
    roomSize = room ? length : 0;
    if (!room) return false;
  }
  takeBack();
  landAt(room, roomSize);
  if (!getBuffer(PLUGIN_CONFIGURATION, at, length) || givenLength() < length) return false;
  windowAt = at;
  windowBytes = givenBytes();
  windowLength = length;
  return true;
}
