import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { installation, noNginx } from "./installation.js";
import { ConfigurationNginx } from "./posted-nginx.js";
import { ownBytes } from "./served-nginx.js";

cleanUpAfterEach();

const MIB = 2 ** 20;

/** 20,000 backends with five endpoints each, and one that is none. */
function refusedBackends(): string {
  const endpoints = (i: number) =>
    Array.from({ length: 5 }, (_, k) => ({ address: `10.0.${i % 250}.${k}`, port: "8080" }));
  const backends = Array.from({ length: 20_000 }, (_, i) => {
    return { name: `ns-service-${i}-80`, port: 80, endpoints: endpoints(i), "load-balance": "round_robin" };
  });
  return JSON.stringify([...backends, { name: 1 }]);
}

describe.skipIf(noNginx)("a worker of few hosts", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  // Read and parsed, such a body takes some 43 MiB, and as much again until it is collected. With a collector that waits as it does
  // for requests it stays five times over.
  it("keeps no more of large bodies that are refused than what one of them takes, and as much again", async () => {
    const nginx = await ConfigurationNginx.start({ workers: 1 });
    const [worker] = (await nginx.nginx.client.state()).workers;
    const body = refusedBackends();
    const sizes: number[] = [];
    for (let i = 0; i < 4; i++) {
      expect((await nginx.post("/configuration/backends", body)).status).toBe(400);
      sizes.push(ownBytes(worker?.pid ?? 0) / MIB);
    }
    expect(Math.max(...sizes)).toBeLessThan(130);
  });
});
