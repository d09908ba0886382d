/**
 * The table of Maglev (Eisenbud et al., NSDI 2016, section 3.4): each of its 65,537 places belongs to one peer. Every peer
 * has an order of its own in which it likes the places; in turns, each takes the first one that is still free, until it has
 * its share. So the shares are as even as whole numbers can be, and where a peer goes, few places but its own change hands.
 */
import { mix32 } from "../memory/bytes";
import { I_OWNERS, I_PEER_COUNT, MAGLEV_PLACES, P_SESSION, P_WEIGHT, PEER_SIZE, peerAt } from "./peer-set-layout";

const FREE: u32 = 0xffff;

/**
 * Shares: a place for everybody and the whole part of what its weight is worth; what is left goes one by one to the first.
 * Where the places for everybody make too much together, only the others are divided by weight.
 * Writes u32[peers] to `shares`.
 */
function share(image: usize, shares: usize, end: usize): void {
  let total: u64 = 0;
  let first = peerAt(image, 0);
  let count = <u32>(end - shares) >> 2;
  for (let i: u32 = 0; i < count; i++) total += load<u16>(peerAt(image, i), P_WEIGHT);
  let least: u32 = 0;
  let left: u32;
  do {
    left = MAGLEV_PLACES;
    let divided: u64 = MAGLEV_PLACES - least * count;
    let peer = first;
    for (let p = shares; p < end; p += 4, peer += PEER_SIZE) {
      let own = max(1, least + <u32>((divided * <u64>load<u16>(peer, P_WEIGHT)) / total));
      store<u32>(p, own);
      left -= own;
    }
    // Below zero, as an unsigned number.
  } while (left > MAGLEV_PLACES && !least++);
  for (let p = shares; left; p += 4, left--) store<u32>(p, load<u32>(p) + 1);
}

/** Fills the owners of an image whose peers stand. `work` is u32[peers] shares, then u32[peers][3]: peer, place, step. */
export function placeMaglev(image: usize, work: usize): void {
  let count = load<u32>(image, I_PEER_COUNT);
  let owners = image + load<u32>(image, I_OWNERS);
  let turns = work + ((<usize>count) << 2);
  share(image, work, turns);
  memory.fill(owners, 0xff, MAGLEV_PLACES << 1);
  let end = turns;
  for (let i: u32 = 0; i < count; i++, end += 12) {
    let id = load<u32>(peerAt(image, i), P_SESSION);
    store<u32>(end, i);
    store<u32>(end, mix32(id) % MAGLEV_PLACES, 4);
    store<u32>(end, (mix32(id + 0x9e3779b9) % (MAGLEV_PLACES - 1)) + 1, 8);
  }
  while (end > turns) {
    let kept = turns;
    for (let turn = turns; turn < end; turn += 12) {
      let peer = load<u32>(turn);
      let place = load<u32>(turn, 4);
      let step = load<u32>(turn, 8);
      // The table is full only when all shares are used up, and the steps of a prime table meet every place.
      while (load<u16>(owners + ((<usize>place) << 1)) != <u16>FREE) {
        place += step;
        if (place >= MAGLEV_PLACES) place -= MAGLEV_PLACES;
      }
      store<u16>(owners + ((<usize>place) << 1), <u16>peer);
      let shares = work + ((<usize>peer) << 2);
      let left = load<u32>(shares) - 1;
      store<u32>(shares, left);
      if (!left) continue;
      store<u32>(kept, peer);
      store<u32>(kept, place, 4);
      store<u32>(kept, step, 8);
      kept += 12;
    }
    end = kept;
  }
}
