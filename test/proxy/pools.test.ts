import { describe, expect, it } from "vitest";
import { UpstreamRegistry } from "../../controller/proxies/embedded/upstream-registry.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";
import { echo, httpPeer } from "../support/peers.js";
import { keyOf, upstreamStep } from "../support/plans.js";

cleanUpAfterEach();

const UPSTREAMS = 600;
const MOST = 512;

describe("pools of connections to peers", () => {
  it("are bounded in number: the one that was used least recently goes, and requests go on", async () => {
    const peer = closing(await httpPeer(echo));
    const registry = new UpstreamRegistry();
    cleanup(() => registry.destroy());
    const names = Array.from({ length: UPSTREAMS }, (_, index) => `web-${index}`);
    const ask = async (name: string) => {
      const [registered] = [...(registry.get(keyOf(name))?.peers.values() ?? [])];
      const answer = await registry.pool(registered)?.request({ path: "/", method: "GET" });
      await answer?.body.dump();
      return answer?.statusCode;
    };
    for (const [index, name] of names.entries()) {
      // Connections of other settings have a pool of their own.
      registry.set(upstreamStep(name, [peer.port], { connectTimeout: 10_000 + index }).upstream);
    }
    for (const name of names) expect(await ask(name)).toBe(200);
    expect(registry.poolCount().open).toBe(MOST);
    expect(await ask(names[0])).toBe(200);
    expect(await ask(names[UPSTREAMS - 1])).toBe(200);
    expect(registry.poolCount().open).toBe(MOST);
  });
});
