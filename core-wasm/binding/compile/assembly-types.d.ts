/**
 * The names of AssemblyScript's number types, for `core-wasm/assembly/image/layout.ts`: the one file that both languages
 * read, so that the layout of images is written down once.
 */
type u32 = number;
type usize = number;
