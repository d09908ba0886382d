/**
 * What a proxy-wasm host offers (ABI 0.2.1, module `env`): the only imports of the filter. Each answers a status, 0 for
 * done; what it returns besides is written to two words, `data` and `size`, in memory that `proxy_on_memory_allocate` gave.
 */

export declare function proxy_log(level: u32, text: usize, size: u32): u32;
export declare function proxy_get_current_time_nanoseconds(time: usize): u32;
export declare function proxy_get_buffer_bytes(buffer: u32, start: u32, most: u32, data: usize, size: usize): u32;
/** `path`: names with zero bytes between them. */
export declare function proxy_get_property(path: usize, length: u32, data: usize, size: usize): u32;
export declare function proxy_get_header_map_pairs(map: u32, data: usize, size: usize): u32;
export declare function proxy_get_header_map_value(
  map: u32,
  name: usize,
  nameLength: u32,
  data: usize,
  size: usize,
): u32;
export declare function proxy_add_header_map_value(
  map: u32,
  name: usize,
  nameLength: u32,
  value: usize,
  length: u32,
): u32;
export declare function proxy_replace_header_map_value(
  map: u32,
  name: usize,
  nameLength: u32,
  value: usize,
  length: u32,
): u32;
export declare function proxy_remove_header_map_value(map: u32, name: usize, nameLength: u32): u32;
/** A function that is the host's own, by name. */
export declare function proxy_call_foreign_function(
  name: usize,
  nameLength: u32,
  argument: usize,
  length: u32,
  data: usize,
  size: usize,
): u32;
/** `headers`: pairs, as `proxy_get_header_map_pairs` gives them. `grpcStatus` -1: none of its own. */
export declare function proxy_send_local_response(
  status: u32,
  details: usize,
  detailsLength: u32,
  body: usize,
  bodyLength: u32,
  headers: usize,
  headersLength: u32,
  grpcStatus: i32,
): u32;
