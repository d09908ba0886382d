/** The regex engine as the rest of the core uses it. */
export { regexCompile } from "./compile";
export { regexTest } from "./dfa";
export { REGEX_WORK_SIZE } from "./dfa-work";
export { REGEX_MAX_SIZE } from "./image";
export { REGEX_REFUSED } from "./limits";
export { regexCaptures, regexScratchSize } from "./simulate";
export { regexValidate } from "./validate";
