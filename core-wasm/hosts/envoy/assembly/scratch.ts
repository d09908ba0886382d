/**
 * Memory for what the host hands in during one callback: header maps, properties, parts of the configuration. Handed out
 * from one area and taken back as a whole when the next callback begins, so that a request allocates nothing.
 */
import { alloc, free } from "../../../assembly/memory/heap";

const AREA: u32 = 1 << 16;
/** Keeps what follows a link to the next block aligned. */
const LINK: u32 = 16;

let area: usize = 0;
let used: u32 = 0;
/** Blocks that the area had no room for, linked by their first words. */
let extra: usize = 0;
/** Where the next bytes go, if they fit. */
let landing: usize = 0;
let landingSize: u32 = 0;

/** `size` bytes that last until the next `takeBack`, 8-byte aligned; 0 if memory is short. */
export function take(size: u32): usize {
  if (size <= landingSize) {
    landingSize = 0;
    return landing;
  }
  if (!area) {
    area = alloc(AREA);
    if (!area) return 0;
  }
  if (size <= AREA - used) {
    let at = area + used;
    used = min(AREA, (used + size + 7) & ~7);
    return at;
  }
  if (size > <u32>i32.MAX_VALUE - LINK) return 0;
  let block = alloc(size + LINK);
  if (!block) return 0;
  store<u32>(block, <u32>extra);
  extra = block;
  return block + LINK;
}

/** Ends everything that `take` has given. */
export function takeBack(): void {
  used = 0;
  landingSize = 0;
  while (extra) {
    let next: usize = load<u32>(extra);
    free(extra);
    extra = next;
  }
}

/** Has the next `take` of at most `size` bytes give this block of the caller. */
export function landAt(block: usize, size: u32): void {
  landing = block;
  landingSize = size;
}
