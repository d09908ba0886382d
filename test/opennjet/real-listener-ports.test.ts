import { beforeAll, describe, expect, it } from "vitest";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { ownOpenNjet } from "../../controller/proxies/opennjet/make-opennjet.js";
import { CARRIERS } from "../../controller/proxies/opennjet/parts.js";
import { ON_FREE_PORTS, startWithoutItsPorts } from "../nginx/lost-ports.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { noOpenNjet } from "./real-installation.js";

cleanUpAfterEach();

describe.skipIf(noOpenNjet)("an OpenNJet on free ports", () => {
  beforeAll(async () => {
    await nativeCore();
  }, 600_000);

  it.each(CARRIERS)("starts on others where another program has those that were chosen: %s", async (carrier) => {
    const own = { carrier, balancer: "own", prefix: process.env.NJET_PREFIX, maxLocations: 300 } as const;
    const { before, after, status, messages } = await startWithoutItsPorts((context) =>
      ownOpenNjet(context, { ...ON_FREE_PORTS, ...own, workers: 1, stats: undefined }),
    );
    expect(after.filter((port) => before.includes(port))).toEqual([]);
    expect(status).toBe(404);
    expect(messages).toContain("opennjet is started with other ports: somebody else has one that was chosen");
  });
});
