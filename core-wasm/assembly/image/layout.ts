/**
 * Layout of a shard image: the rules of one host pattern. Little-endian, position independent, every part 4-byte
 * aligned. The compiler writes all parts in one fixed order with no gaps, so that the validator can require each
 * offset to be exactly the end of what came before: no part can overlap another or be visited twice.
 *
 * This file is read by two languages: by the core, which checks and reads images, and by the compiler in the binding,
 * which writes them. It holds only what both understand, and imports nothing.
 *
 * Header, 96 bytes:
 *    0 u32 magic "NJSH"        32 u32 route count              64 u32 unmatched outcome (0: none)
 *    4 u32 format version      36 u32 routes offset            68 u32 unmatched need list (0: none)
 *    8 u64 checksum64 of all   40 u32 first regex route        72 u32 names offset (0: no names)
 *          bytes from 16 on    44 u32 first prefix route       76 u32 regex scratch bytes
 *   16 u32 total bytes         48 u32 guard count              80 u32 value slot of the cookie header (0: none)
 *   20 u32 host length         52 u32 guards offset            84 u32 upstream count
 *   24 u32 pattern kind        56 u32 header count             88 u32 upstreams offset
 *   28 u32 match offset        60 u32 headers offset           92 u32 zero
 * After it: host text (padded to 8 with zeros) | match | routes | guards | actions | upstreams | headers | names.
 * Upstreams and headers: per entry u32 length and text padded to 4.
 *
 * Routes are in the order in which they would be tried: exact, regexes as written, prefixes from the longest on.
 */
export const SHARD_MAGIC: u32 = 0x48534a4e;
export const SHARD_VERSION: u32 = 2;

export const S_VERSION: usize = 4;
export const S_CHECKSUM: usize = 8;
export const S_SIZE: usize = 16;
export const S_PATTERN: usize = 24;
export const S_HOST_LENGTH: usize = 20;
export const S_MATCH: usize = 28;
export const S_ROUTE_COUNT: usize = 32;
export const S_ROUTES: usize = 36;
export const S_FIRST_REGEX: usize = 40;
export const S_FIRST_PREFIX: usize = 44;
export const S_GUARD_COUNT: usize = 48;
export const S_GUARDS: usize = 52;
export const S_HEADER_COUNT: usize = 56;
export const S_HEADERS: usize = 60;
export const S_UNMATCHED: usize = 64;
export const S_UNMATCHED_NEED: usize = 68;
export const S_NAMES: usize = 72;
export const S_SCRATCH: usize = 76;
export const S_COOKIE: usize = 80;
export const S_UPSTREAM_COUNT: usize = 84;
export const S_UPSTREAMS: usize = 88;
export const S_HEADER_SIZE: u32 = 96;

export const NONE: u32 = 0xffffffff;

/** Pattern kinds. */
export const PATTERN_EXACT: u32 = 0;
export const PATTERN_ONE_LABEL: u32 = 1;
export const PATTERN_ANY_LABELS: u32 = 2;
export const PATTERN_ANY_HOST: u32 = 3;
export const PATTERN_DEFAULT: u32 = 4;

/**
 * Match section: nodes of a byte trie in depth-first order, a child always after its parent.
 *   0 u16 label length (bytes after the byte that selected the node)
 *   2 u8  flags: which terminals follow, how children are found
 *   3 u8  child count - 1 when flag N_CHILDREN is set
 *   4     label, padded to 8 with zeros: one masked word compares most labels
 *         u32 exact route, u32 segments route, u32 prefix route: each only with its flag
 *         child keys, ascending: 8 bytes (at most 8 children, filled up with zeros), or a bitmap of 32 bytes
 *         u32 offset of each child, from the start of the image
 */
export const N_EXACT: u32 = 1;
export const N_SEGMENTS: u32 = 2;
export const N_PREFIX: u32 = 4;
export const N_CHILDREN: u32 = 8;
export const N_BITMAP: u32 = 16;
export const NODE_HEADER: u32 = 4;
export const FEW_CHILDREN: u32 = 8;

/**
 * Route, 40 bytes:
 *    0 u8 kind, u8 flags, u16 zero    16 u32 match count           32 u32 need list (0: none)
 *    4 u32 path offset                20 u32 matches offset        36 u32 next: the candidate after this one,
 *    8 u32 path length                24 u32 outcome (0: none)            or NONE (see nextCandidate)
 *   12 u32 regex offset (0: none)     28 u32 regex length
 */
export const R_FLAGS: usize = 1;
export const R_PATH: usize = 4;
export const R_PATH_LENGTH: usize = 8;
export const R_REGEX: usize = 12;
export const R_MATCH_COUNT: usize = 16;
export const R_MATCHES: usize = 20;
export const R_OUTCOME: usize = 24;
export const R_REGEX_LENGTH: usize = 28;
export const R_NEED: usize = 32;
export const R_NEXT: usize = 36;
export const ROUTE_SIZE: u32 = 40;

export const ROUTE_EXACT: u32 = 0;
export const ROUTE_SEGMENTS: u32 = 1;
export const ROUTE_PREFIX: u32 = 2;
export const ROUTE_REGEX: u32 = 3;
export const FLAG_STOPS_REGEX: u32 = 1;
export const FLAG_IGNORE_CASE: u32 = 2;
export const FLAG_ANCHORED: u32 = 4;

/** Match, 12 bytes: u32 condition count, u32 conditions offset, u32 outcome. A guard is a match: need list in front, 16 bytes. */
export const M_CONDITIONS: usize = 4;
export const M_OUTCOME: usize = 8;
export const MATCH_SIZE: u32 = 12;
export const GUARD_SIZE: u32 = 16;

/**
 * Condition, 24 bytes: 0 u8 source, u8 test, u8 negated, u8 variable | 4 u32 name (header: value slot; cookie, argument:
 * offset) | 8 u32 name length | 12 u32 operand offset (text, or regex image) | 16 u32 operand length | 20 u32 zero
 */
export const C_TEST: usize = 1;
export const C_NEGATED: usize = 2;
export const C_VARIABLE: usize = 3;
export const C_NAME: usize = 4;
export const C_NAME_LENGTH: usize = 8;
export const C_OPERAND: usize = 12;
export const C_OPERAND_LENGTH: usize = 16;
export const CONDITION_SIZE: u32 = 24;

export const SOURCE_HEADER: u32 = 1;
export const SOURCE_COOKIE: u32 = 2;
export const SOURCE_ARGUMENT: u32 = 3;
export const SOURCE_VARIABLE: u32 = 4;

export const TEST_EQUALS: u32 = 1;
export const TEST_REGEX: u32 = 2;
export const TEST_EMPTY: u32 = 3;

/**
 * Outcome: an action, or a split: u8 kind SPLIT, u8 zero, u16 entry count, u32 total weight, then per entry u32 weight
 * (cumulative, inclusive) and u32 action offset.
 * Action, 32 bytes: 0 u8 kind, u8 rewrite, u16 status | 4 u32 upstream index | 8 u32 template offset | 12 u32 length
 * | 16 u32 content type offset | 20 u32 length | 24 u32 settings offset | 28 u32 settings length
 */
export const ACTION_PROXY: u32 = 1;
export const ACTION_REDIRECT: u32 = 2;
export const ACTION_RETURN: u32 = 3;
export const SPLIT: u32 = 4;
export const SPLIT_HEADER: u32 = 8;
export const SPLIT_ENTRY: u32 = 8;
export const SPLIT_TOTAL: usize = 4;

export const A_REWRITE: usize = 1;
export const A_STATUS: usize = 2;
export const A_UPSTREAM: usize = 4;
export const A_TEMPLATE: usize = 8;
export const A_TEMPLATE_LENGTH: usize = 12;
export const A_TYPE: usize = 16;
export const A_TYPE_LENGTH: usize = 20;
export const A_SETTINGS: usize = 24;
export const A_SETTINGS_LENGTH: usize = 28;
export const ACTION_SIZE: u32 = 32;

export const REWRITE_NONE: u32 = 0;
export const REWRITE_PREFIX: u32 = 1;
export const REWRITE_PATH: u32 = 2;

/**
 * Template: parts one after another. Part: u8 op, u8 argument, u16 length, then `length` bytes padded to 4.
 * op TEXT: the bytes; VARIABLE: argument is the variable; GROUP: argument is the group; HEADER: length is the value slot
 * of the header, no bytes follow; COOKIE, ARGUMENT: the bytes are the name.
 */
export const PART_TEXT: u32 = 0;
export const PART_HEADER: u32 = 1;
export const PART_COOKIE: u32 = 2;
export const PART_ARGUMENT: u32 = 3;
export const PART_VARIABLE: u32 = 4;
export const PART_GROUP: u32 = 5;

/**
 * Settings: type-length-value. u16 tag (bit 15: must be understood), u16 flags, u32 length of the value, value (length
 * is a multiple of 4). Header changes (tags 1 to 6) and error pages (7 to 9): value is u32 name length, name padded to 4,
 * template. The name of an error page is `STATUS CODES [TYPE]`, such as `200 502,503 text/html`.
 */
export const TAG_MUST_UNDERSTAND: u32 = 0x8000;
/** The template is a body. */
export const TAG_ERROR_RETURN: u32 = 7;
/** The template is a location. */
export const TAG_ERROR_REDIRECT: u32 = 8;
/** A header of the error page before it. */
export const TAG_ERROR_HEADER: u32 = 9;
export const TAG_LAST: u32 = TAG_ERROR_HEADER;
export const SETTING_HEADER: u32 = 8;

/**
 * Value slots: what the caller may have to fill in. Slots below FACTS are facts of the connection, slot FACTS + i is
 * header i of the image. Need list: u32 count, then u32 slot each, ascending.
 */
export const FACT_ADDRESS: u32 = 0;
export const FACT_PORT: u32 = 1;
export const FACT_METHOD: u32 = 2;
export const FACT_PROTOCOL: u32 = 3;
export const FACTS: u32 = 4;

/**
 * Names: u32 resource count | per resource u32 offset, u32 length | per route u32 resource index, u32 label offset,
 * u32 label length | per guard u32 resource index | u32 resource index of unmatched (or NONE) | texts, each padded to 4.
 */
export const NAME_RESOURCE_SIZE: u32 = 8;
export const NAME_ROUTE_SIZE: u32 = 12;

/**
 * Key of a peer set: what a request is hashed by, and the cookie that names its peer. Header, 32 bytes:
 *    0 u32 size                                           16 u32 hash template, 20 u32 its length (0: no hash)
 *    4 u32 header count                                   24 u32 sticky template, 28 u32 its length: one cookie part
 *    8 u32 value slot of the cookie header (0: none)             (0, 0: no session cookie)
 *   12 u32 need list of both templates (0: none)
 * then headers (u32 length, text padded to 4), need list, hash template, sticky template. Offsets are from the start of
 * the key. A set that needs neither has no key at all: zero bytes.
 */
export const K_SIZE: usize = 0;
export const K_HEADER_COUNT: usize = 4;
export const K_COOKIE: usize = 8;
export const K_NEED: usize = 12;
export const K_TEMPLATE: usize = 16;
export const K_TEMPLATE_LENGTH: usize = 20;
export const K_STICKY: usize = 24;
export const K_STICKY_LENGTH: usize = 28;
export const KEY_HEADER: u32 = 32;

/** Variables by number. */
export const VAR_ARGS: u32 = 0;
export const VAR_HOST: u32 = 1;
export const VAR_HTTP2: u32 = 2;
export const VAR_HTTPS: u32 = 3;
export const VAR_QUERY_STRING: u32 = 4;
export const VAR_REMOTE_ADDR: u32 = 5;
export const VAR_REMOTE_PORT: u32 = 6;
export const VAR_REQUEST: u32 = 7;
export const VAR_REQUEST_METHOD: u32 = 8;
export const VAR_REQUEST_URI: u32 = 9;
export const VAR_SCHEME: u32 = 10;
export const VAR_SERVER_PROTOCOL: u32 = 11;
export const VAR_URI: u32 = 12;
export const VARIABLE_COUNT: u32 = 13;

/** Limits. */
export const MAX_HOST: u32 = 255;
export const MAX_PATH: u32 = 4096;
export const MAX_ROUTES: u32 = 65536;
/** Value slots of an image, facts included. */
export const MAX_SLOTS: u32 = 128;
export const MAX_HEADERS: u32 = 124;
/** Conditions of a match, matches of a route and entries of a split are fewer than this. */
export const MAX_LIST: u32 = 4096;
/** Bytes of one part of a template. */
export const MAX_PART: u32 = 65535;
/** Headers that hash keys of peer sets may look at, besides those of the shard, facts included. */
export const MAX_KEY_SLOTS: u32 = 32;
export const MAX_SPLIT_TOTAL: u32 = 1000000;
export const MAX_IMAGE: u32 = 1 << 28;

/** `n` rounded up to a multiple of 8. */
export function pad8(n: u32): u32 {
  return (n + 7) & ~7;
}

/** `n` rounded up to a multiple of 4. */
export function pad4(n: u32): u32 {
  return (n + 3) & ~3;
}
