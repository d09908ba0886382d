/**
 * The record of an upstream. It stays where it is while a shard names it or it has peers; its peer set is replaced whole.
 *
 * Record, 40 bytes, then the key: 0 magic "NJUP" | 4 references from shards | 8 peer set image (0: none) | 12 its size
 * | 16 key hash | 20 key length | 24 cursor index | 28 trouble | 32 sum of the weights | 36 zero
 * Cursor indices are given out densely and used again, so that the cursors of a context are a plain array.
 */
export const RECORD_MAGIC: u32 = 0x50554a4e;
export const U_REFERENCES: usize = 4;
export const U_PEERS: usize = 8;
export const U_PEERS_SIZE: usize = 12;
export const U_HASH: usize = 16;
export const U_KEY_LENGTH: usize = 20;
export const U_CURSOR: usize = 24;
export const U_TROUBLE: usize = 28;
export const U_WEIGHT: usize = 32;
export const U_KEY: usize = 40;

/** Trouble: what picking has to look at. Weights differ. */
export const TROUBLE_WEIGHTS: u32 = 1;
/** A peer drains, is down, or is unchecked where checks are mandatory. */
export const TROUBLE_STATES: u32 = 2;
/** A peer came back: its weight may still rise. */
export const TROUBLE_RAMPS: u32 = 4;
/** Requests under way are counted. */
export const TROUBLE_COUNTED: u32 = 8;
/** And must stay below a number. */
export const TROUBLE_CAPPED: u32 = 16;
