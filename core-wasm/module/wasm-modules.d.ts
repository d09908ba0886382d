/** A file of WebAssembly that is imported as a compiled module, as worker platforms have it. */
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}
