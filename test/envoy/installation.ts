import { ENVOY_VERSION } from "../../bench/nginx/envoy.js";
import { installed, ToolUnavailable } from "../../bench/nginx/tools.js";

let found: string | undefined;

/** Why there is no Envoy here for tests; undefined if there is one. Printed once for each file that would have used it. */
export const noEnvoy: string | undefined = await installed<{ binary: string }>(
  "bench/nginx/install-envoy.mjs",
  ENVOY_VERSION,
).then(
  ({ binary }) => {
    found = binary;
    return undefined;
  },
  (error: unknown) => {
    if (!(error instanceof ToolUnavailable)) throw error;
    console.warn(`tests with Envoy are skipped: ${error.message}`);
    return error.message;
  },
);

/** Path of the program. */
export function envoyBinary(): string {
  if (found === undefined) throw new Error(noEnvoy);
  return found;
}
