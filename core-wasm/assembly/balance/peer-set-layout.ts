/**
 * A *peer set*: the peers of one upstream and the way one is chosen, as an immutable, position-independent image.
 * Canonical: the same peers give the same bytes, whatever the order in which they were named. Little-endian.
 *
 * Header, 96 bytes:
 *   0  u32 magic `NJPI`            40  u32 buckets offset
 *   4  u32 format version          44  u32 owners offset
 *   8  u64 checksum64 of all       48  u32 template offset
 *          bytes from 16 on        52  u32 template length
 *  16  u32 total size              56  u32 ids offset
 *  20  u8  method                  60  u32 ids length
 *  21  u8  bucket bits (0: none)   64  u32 key offset
 *  22  u16 flags                   68  u32 key length
 *  24  u32 peer count              72  u32 display offset
 *  28  u32 point count             76  u32 display length
 *  32  u32 peers offset            80  u32 max fails (0: failures never count)
 *  36  u32 hashes offset           84  u32 fail timeout, ms
 *                                  88  u32 max conns (0: any number)
 *                                  92  u32 slow start, ms
 *
 * Sections, one after another, without gaps but for the padding before the template:
 *   peers     Peer[peers], by address (IPv4 before IPv6, numerically), then port; no two alike
 *   hashes    u32[points], ascending; points with one hash are ordered by the bytes of their owner's id
 *   buckets   u32[2^bits + 1]: how many hashes are below `bucket << (32 - bits)`; the last one is the point count
 *   owners    u16[points]: index of the peer that a point belongs to
 *             (Maglev has owners only: MAGLEV_PLACES of them)
 *   (zeros up to a multiple of 4)
 *   template  the compiled hash key; opaque here
 *   ids       `ip:port` of each peer, `[ip]:port` for IPv6, one after another
 *   key       identity of the upstream
 *   display   `namespace/service:port`
 *
 * Hashes and owners are apart because a search touches hashes only, and because a merge moves hashes in blocks.
 *
 * Peer, 32 bytes:
 *   0  u32 offset of the id        10  u8  family, 4 or 6
 *   4  u16 port                    11  u8  flags: 1 draining
 *   6  u16 weight                  12  u32 session id: CRC-32 of the id
 *   8  u8  length of the id        16  u64[2] address, the upper half first; IPv4 in the upper 32 bits
 *   9  u8  length of the address within the id
 */
export const IMAGE_MAGIC: u32 = 0x49504a4e;
export const IMAGE_VERSION: u32 = 2;

export const METHOD_ROUND_ROBIN: u32 = 0;
/** Ring of the ids `ip:port`. */
export const METHOD_RING: u32 = 1;
/** Ring of NGINX's `hash ... consistent`: the id is host, NUL, port. */
export const METHOD_NGINX_RING: u32 = 2;
export const METHOD_MAGLEV: u32 = 3;
export const METHOD_LEAST_CONN: u32 = 4;
export const METHOD_RANDOM: u32 = 5;
export const METHOD_RANDOM_TWO: u32 = 6;
export const METHOD_IP_HASH: u32 = 7;

/** Flags of a set. BOUNDED: a hashed choice passes peers over that have too many requests under way. */
export const SET_BOUNDED: u32 = 1;
/** Unchecked peers get no traffic. */
export const SET_MANDATORY: u32 = 2;
/** Where active checks have all peers down, all are used. */
export const SET_PANIC: u32 = 4;
/** The compiled key has a template for the session cookie. */
export const SET_STICKY: u32 = 8;
export const SET_FLAGS: u32 = 15;

/** Flag of a peer: no new clients. */
export const PEER_DRAINING: u32 = 1;

/** Places of a Maglev table, a prime; also its point count. */
export const MAGLEV_PLACES: u32 = 65537;

export const POINTS_PER_WEIGHT: u32 = 160;
/** Bounds that keep every size far below 2^31 and every index in 15 bits. */
export const MAX_PEERS: u32 = 32768;
export const MAX_POINTS: u32 = 1 << 22;
/** Greatest sum of the weights of a ring. */
export const MAX_WEIGHT: u32 = MAX_POINTS / POINTS_PER_WEIGHT;
/** Longest key, display text and template. */
export const MAX_TEXT: u32 = 1 << 16;
/** Longest id: brackets, an IPv6 address, a colon, five digits. */
export const MAX_ID: u32 = 47;

export const NONE: u32 = 0xffffffff;

export const I_VERSION: usize = 4;
export const I_CHECKSUM: usize = 8;
export const I_SIZE: usize = 16;
export const I_METHOD: usize = 20;
export const I_BITS: usize = 21;
export const I_FLAGS: usize = 22;
export const I_PEER_COUNT: usize = 24;
export const I_POINT_COUNT: usize = 28;
export const I_PEERS: usize = 32;
export const I_HASHES: usize = 36;
export const I_BUCKETS: usize = 40;
export const I_OWNERS: usize = 44;
export const I_TEMPLATE: usize = 48;
export const I_TEMPLATE_LENGTH: usize = 52;
export const I_IDS: usize = 56;
export const I_IDS_LENGTH: usize = 60;
export const I_KEY: usize = 64;
export const I_KEY_LENGTH: usize = 68;
export const I_DISPLAY: usize = 72;
export const I_DISPLAY_LENGTH: usize = 76;
export const I_LIMITS: usize = 80;
export const I_MAX_FAILS: usize = 80;
export const I_FAIL_TIMEOUT: usize = 84;
export const I_MAX_CONNS: usize = 88;
export const I_SLOW_START: usize = 92;
export const LIMITS_SIZE: u32 = 16;
export const IMAGE_HEADER: u32 = 96;

export const P_ID: usize = 0;
export const P_PORT: usize = 4;
export const P_WEIGHT: usize = 6;
export const P_ID_LENGTH: usize = 8;
export const P_ADDRESS_LENGTH: usize = 9;
export const P_FAMILY: usize = 10;
export const P_FLAGS: usize = 11;
export const P_SESSION: usize = 12;
export const P_ADDRESS: usize = 16;
export const PEER_SIZE: u32 = 32;

/** Number of top bits of a hash that choose a bucket: two to four points share one. */
export function bucketBits(points: u32): u32 {
  return points ? 30 - clz(points) : 0;
}

/** True if peers of this method are found on a ring of hashed points. */
export function hasRing(method: u32): bool {
  return method == METHOD_RING || method == METHOD_NGINX_RING;
}

/** True if there is such a method, with these flags of a set. */
export function flagsFit(method: u32, flags: u32): bool {
  if (method > METHOD_IP_HASH || flags > SET_FLAGS) return false;
  return !(flags & SET_BOUNDED) || hasRing(method) || method == METHOD_MAGLEV;
}

/** Number of points with hashes. A ring has bucket bits, a Maglev table has none. */
function hashCount(header: usize): u32 {
  return load<u8>(header, I_BITS) ? load<u32>(header, I_POINT_COUNT) : 0;
}

/** Bytes of the bucket section. */
export function bucketBytes(points: u32): u32 {
  return points ? ((1 << bucketBits(points)) + 1) << 2 : 0;
}

/**
 * Goes over the offsets of a header, which follow from its counts and lengths, and its total size: writes them, or
 * compares them. Returns 0 if all of them are right.
 */
export function layOut(header: usize, write: bool): u32 {
  let hashes = hashCount(header);
  let at = IMAGE_HEADER;
  let wrong = offsetIs(header + I_PEERS, at, write);
  at += load<u32>(header, I_PEER_COUNT) * PEER_SIZE;
  wrong |= offsetIs(header + I_HASHES, at, write);
  at += hashes << 2;
  wrong |= offsetIs(header + I_BUCKETS, at, write);
  at += bucketBytes(hashes);
  wrong |= offsetIs(header + I_OWNERS, at, write);
  at = (at + (load<u32>(header, I_POINT_COUNT) << 1) + 3) & ~3;
  for (let section = header + I_TEMPLATE; section < header + I_LIMITS; section += 8) {
    wrong |= offsetIs(section, at, write);
    at += load<u32>(section, 4);
  }
  return wrong | offsetIs(header + I_SIZE, at, write);
}

function offsetIs(field: usize, at: u32, write: bool): u32 {
  if (write) store<u32>(field, at);
  return load<u32>(field) ^ at;
}

/** Places of a set without a ring: those of Maglev, else none. */
export function placesOf(method: u32, peers: u32): u32 {
  return method == METHOD_MAGLEV && peers ? MAGLEV_PLACES : 0;
}

/** Number of peers of an image; 0 where there is none. */
export function peersOf(image: usize): u32 {
  return image ? load<u32>(image, I_PEER_COUNT) : 0;
}

/** Number of positions: points of the ring, places of Maglev, peers where there is neither. */
export function positionsOf(image: usize): u32 {
  let points = load<u32>(image, I_POINT_COUNT);
  return points ? points : load<u32>(image, I_PEER_COUNT);
}

/** Address of the record of peer `index`. */
export function peerAt(image: usize, index: u32): usize {
  return image + IMAGE_HEADER + index * PEER_SIZE;
}

/** Place of the `:` between address and port within the id of a peer. */
export function separatorOf(peer: usize): u32 {
  return <u32>load<u8>(peer, P_ADDRESS_LENGTH) + (load<u8>(peer, P_FAMILY) == 6 ? 2 : 0);
}

/** Order of two peer records by address (IPv4 before IPv6), then port: below, at or above zero. */
export function compareAddresses(a: usize, b: usize): i32 {
  let family = <i32>load<u8>(a, P_FAMILY) - <i32>load<u8>(b, P_FAMILY);
  if (family) return family;
  let half = load<u64>(a, P_ADDRESS) != load<u64>(b, P_ADDRESS) ? P_ADDRESS : P_ADDRESS + 8;
  let x = load<u64>(a + half);
  let y = load<u64>(b + half);
  if (x != y) return x < y ? -1 : 1;
  return <i32>load<u16>(a, P_PORT) - <i32>load<u16>(b, P_PORT);
}

/** Order of two peers of an image by the bytes of their ids, in the spelling that the image's method hashes. */
export function compareIds(image: usize, a: u32, b: u32): i32 {
  let left = peerAt(image, a);
  let right = peerAt(image, b);
  let nul = load<u8>(image, I_METHOD) == METHOD_NGINX_RING;
  let leftNul = nul ? separatorOf(left) : NONE;
  let rightNul = nul ? separatorOf(right) : NONE;
  let p = image + load<u32>(left, P_ID);
  let q = image + load<u32>(right, P_ID);
  let length: u32 = min<u32>(load<u8>(left, P_ID_LENGTH), load<u8>(right, P_ID_LENGTH));
  for (let i: u32 = 0; i < length; i++) {
    let x: i32 = i == leftNul ? 0 : load<u8>(p + i);
    let y: i32 = i == rightNul ? 0 : load<u8>(q + i);
    if (x != y) return x - y;
  }
  return <i32>load<u8>(left, P_ID_LENGTH) - <i32>load<u8>(right, P_ID_LENGTH);
}
