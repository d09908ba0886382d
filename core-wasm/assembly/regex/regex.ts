/** The regex engine as the rest of the core uses it. */
export { regexCaptures, regexScratchSize } from "./captures";
export { regexTest } from "./dfa";
export { regexValidate } from "./validate";
