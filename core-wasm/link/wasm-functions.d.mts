/** A module taken apart: its functions, and how it is put together again; see wasm-functions.mjs. */
export function readModule(bytes: Uint8Array): {
  functions: readonly { name: string | undefined }[];
  write(order: readonly number[], keys?: readonly number[]): Uint8Array<ArrayBuffer>;
};
