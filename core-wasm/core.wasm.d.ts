/** core.wasm as worker platforms and their bundlers import it: compiled, to be handed to `Core.load`. */
declare const module: WebAssembly.Module;
export default module;
