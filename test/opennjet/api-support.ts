import { expect } from "vitest";
import { OpenNjetApi, type OpenNjetApiError } from "../../controller/proxies/opennjet/api/index.js";
import { type DoubleOptions, OpenNjetDouble } from "../real/opennjet-double/index.js";
import { closing } from "../support/harness.js";

export const SITE = { addressPort: "0.0.0.0:80", serverName: "_" };

export interface DrivenDouble {
  double: OpenNjetDouble;
  api: OpenNjetApi;
}

/** A double with one server, and a client; both end after the test. */
export async function driven(options: Partial<DoubleOptions> = {}): Promise<DrivenDouble> {
  const configuration = {
    servers: [{ listens: ["0.0.0.0:80"], names: ["_"], body: "location / { return 404 none; }" }],
    upstreams: { fixed: { servers: ["127.0.0.1:9"] } },
    maps: [{ keyFrom: "$ssl_server_name", keyTo: "$certificate", values: [{ valueFrom: "default", valueTo: "none" }] }],
    split: { key: "$request_id", variable: "$share", shares: { a: 100, b: 0 } },
  };
  const double = closing(await OpenNjetDouble.start({ configuration, ...options }));
  const api = closing(new OpenNjetApi({ origin: double.origin }));
  return { double, api };
}

/** What a call rejects with. */
export async function failure(call: Promise<unknown>): Promise<OpenNjetApiError> {
  const outcome = await call.then(
    (value) => ({ value }),
    (error: OpenNjetApiError) => ({ error }),
  );
  if ("error" in outcome) return outcome.error;
  expect.fail(`it did not fail, and gave ${JSON.stringify(outcome.value)}`);
}
