/**
 * Status codes of the core. Zero and above is success; below zero is an error. The binding maps each to a
 * `CoreErrorCode`; ABI.md lists them.
 */
export const OK: i32 = 0;
/** A request needs header values before it can be decided (not an error). */
export const NEED: i32 = 1;
/** Each peer that could be picked has as many requests under way as it may (not an error). */
export const BUSY: i32 = 2;
/** A pattern does not compile; position and reason are written to the result words. */
export const E_REGEX: i32 = -1;
/** An image ends before its header or its stated size. */
export const E_TRUNCATED: i32 = -2;
/** Not an image of the expected kind. */
export const E_MAGIC: i32 = -3;
/** An image of another format version. */
export const E_VERSION: i32 = -4;
/** The bytes of an image do not fit its checksum. */
export const E_CHECKSUM: i32 = -5;
/** An offset, count or index of an image is not what the format allows. */
export const E_CORRUPT: i32 = -6;
/** A peer set source, or an argument, is not what the format allows. */
export const E_SOURCE: i32 = -7;
/** A limit of the format is exceeded (path length, routes, headers). */
export const E_LIMIT: i32 = -8;
/** Memory could not be had. */
export const E_MEMORY: i32 = -9;
/** A pointer or length that the caller gave is not valid. */
export const E_POINTER: i32 = -10;
/** A call that does not fit the state, such as resume without NEED. */
export const E_STATE: i32 = -11;
/** The image has a setting that must be understood and is not known to this core. */
export const E_UNSUPPORTED: i32 = -12;
