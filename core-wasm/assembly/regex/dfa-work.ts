/**
 * Layout of the DFA construction, behind the parse tree.
 *
 *   class map        u8[256]
 *   representatives  u8[256], one byte of each class
 *   sparse, dense    u16[4096] each: the instructions visited by the closure that is being made
 *   stack            u16[4096 + 1], of the closure
 *   leaves           u16[4096]: the instructions of the state that is being expanded
 *   buckets          u16[1024]: index of a state plus 1, open addressing by the hash of its set
 *   restart          Set: what every state of an unanchored search holds too
 *   ending           Set: scratch
 *   states           State[512 + 1]; the one behind the last is the candidate that is being made
 *   transitions      as in the image
 *
 * State: u32, 1 if it accepts at the end of the text; Set: bit i is instruction i, a byte taker or an END_TEXT that
 * waits for the end. Its size follows the program's.
 */
import { MAX_INSTRUCTIONS, MAX_STATES, MAX_TABLE_BYTES } from "./limits";
import { TREE_BYTES } from "./tree";
import { TREE_AREA } from "./work";

const SET_MAX: usize = MAX_INSTRUCTIONS / 8;

export const DFA_MAP: usize = TREE_AREA + TREE_BYTES;
export const DFA_REPRESENTATIVES: usize = DFA_MAP + 256;
export const DFA_SPARSE: usize = DFA_REPRESENTATIVES + 256;
export const DFA_DENSE: usize = DFA_SPARSE + 2 * MAX_INSTRUCTIONS;
export const DFA_STACK: usize = DFA_DENSE + 2 * MAX_INSTRUCTIONS;
export const DFA_LEAVES: usize = DFA_STACK + 2 * MAX_INSTRUCTIONS + 4;
export const DFA_BUCKETS: usize = DFA_LEAVES + 2 * MAX_INSTRUCTIONS;
export const BUCKETS: u32 = 1024;
export const DFA_RESTART: usize = DFA_BUCKETS + 2 * BUCKETS;
export const DFA_ENDING: usize = DFA_RESTART + SET_MAX;
export const DFA_STATES: usize = DFA_ENDING + SET_MAX;
export const DFA_TRANSITIONS: usize = DFA_STATES + (SET_MAX + 4) * (MAX_STATES + 1);

/** Bytes of work area that suffice for every pattern. */
export const REGEX_WORK_SIZE: u32 = <u32>DFA_TRANSITIONS + MAX_TABLE_BYTES;
