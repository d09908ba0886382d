import type { HealthCheck } from "../model/types.js";

/** True if a status passes a check: one of its ranges, or with `negated` none of them; without ranges 2xx and 3xx. */
export function statusPasses(status: number, match: HealthCheck["statusMatch"]): boolean {
  if (match === undefined) return status >= 200 && status < 400;
  return match.ranges.some(({ from, to }) => status >= from && status <= to) !== match.negated;
}
