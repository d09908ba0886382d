import { RE2JS, RE2JSSyntaxException } from "re2js";
import type { PatternChecker } from "../../core-wasm/binding/api.js";

/** The checker that tests of objects use. It answers as the core does; here by RE2 in JavaScript. */
export function patternChecker(): PatternChecker {
  return {
    checkRegex(pattern, ignoreCase) {
      try {
        const compiled = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
        return { groups: compiled.groupCount() };
      } catch (error) {
        if (error instanceof RE2JSSyntaxException) return { problem: { position: 0, message: error.message } };
        throw error;
      }
    },
  };
}
