import type { Logger } from "../../observability/logger.js";
import type { ControlClient } from "../nginx/control-client.js";
import { makePiece } from "../nginx/piece.js";

/** Tells the workers which version of the map to rely on. */
export interface MapSwitch {
  /**
   * With undefined no worker relies on the map once this resolves. With a version, a worker does as soon as it has seen that
   * version itself.
   */
  set(version: string | undefined): Promise<void>;
}

/** `CERTIFICATE_MAP` of balancer/state/record.lua. In no checksum and no journal: a fresh OpenNJet relies on nothing. */
const CERTIFICATE_MAP = 10;
const KEY = "certificates";

/** The switch as a piece of the workers' shared state. */
export function mapSwitch(client: Pick<ControlClient, "post">, logger: Logger): MapSwitch {
  return {
    async set(version) {
      const piece = makePiece(CERTIFICATE_MAP, KEY, version === undefined ? undefined : Buffer.from(version));
      const { late } = await client.post([piece]);
      if (late.length > 0) logger.warn("workers are late to hear about the map of certificates", { workers: late });
    },
  };
}
