/**
 * The record of an upstream. It stays where it is while a shard names it or it has peers; its peer set is replaced whole.
 *
 * Record, 32 bytes, then the key: 0 key hash | 4 key length | 8 references from shards | 12 peer set image (0: none)
 * | 16 slot of the cursor (table/peer-slots.ts) | 20 trouble | 24 sum of the weights | 28 zero
 */
export const U_REFERENCES: usize = 8;
export const U_PEERS: usize = 12;
export const U_CURSOR: usize = 16;
export const U_TROUBLE: usize = 20;
export const U_WEIGHT: usize = 24;
export const U_KEY: usize = 32;

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
