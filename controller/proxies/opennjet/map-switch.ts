import type { Logger } from "../../observability/logger.js";
import { type ControlClient, ControlError } from "../nginx/control-client.js";
import { makePiece } from "../nginx/piece.js";

/** Tells the workers which version of the map to rely on. */
export interface MapSwitch {
  /**
   * With undefined no worker relies on the map once this resolves. With a version, a worker does as soon as it has seen that
   * version itself. Rejects with MapSwitchRefusedError where asking again changes nothing: workers go on as they were, or after a
   * version that was refused answer handshakes by themselves.
   */
  set(version: string | undefined): Promise<void>;
}

/** The workers' shared state does not take what they are to be told. */
export class MapSwitchRefusedError extends Error {
  override readonly name = "MapSwitchRefusedError";

  constructor(
    readonly code: "PROXY_STATE_FULL" | "PROXY_STEP_FAILED",
    version: string | undefined,
    reason: string,
  ) {
    const what = version === undefined ? "to leave the map of certificates" : "of the new map of certificates";
    const remedy =
      code === "PROXY_STATE_FULL"
        ? "give them more memory with --nginx-state-size, or remove objects"
        : "see the log of opennjet, and start it anew if it is of another version";
    super(`workers can't be told ${what}: ${reason}; ${remedy}`);
  }
}

/** `CERTIFICATE_MAP` of balancer/state/record.lua. In no checksum and no journal: a fresh OpenNJet relies on nothing. */
const CERTIFICATE_MAP = 10;
const KEY = "certificates";

/** The switch as a piece of the workers' shared state. */
export function mapSwitch(client: Pick<ControlClient, "post">, logger: Logger): MapSwitch {
  return {
    async set(version) {
      const piece = makePiece(CERTIFICATE_MAP, KEY, version === undefined ? undefined : Buffer.from(version));
      const { late, failures } = await client.post([piece]).catch((error: unknown) => {
        if (!(error instanceof ControlError) || error.refusal === undefined) throw error;
        throw new MapSwitchRefusedError(error.refusal, version, error.message);
      });
      if (late.length > 0) logger.warn("workers are late to hear about the map of certificates", { workers: late });
      const [failure] = failures;
      if (failure === undefined) return;
      const code = failure.code === "PROXY_STATE_FULL" ? failure.code : "PROXY_STEP_FAILED";
      throw new MapSwitchRefusedError(code, version, failure.message);
    },
  };
}
