import { afterAll, describe, expect, it } from "vitest";
import { MOST_HEADERS, removeModules, trappingFilter } from "../native/trapping-modules.js";
import { httpPeer } from "../support/peers.js";
import { answer, hostRules, peers, prefix, route } from "../support/rules.js";
import { bundleFrom, upstream } from "./bundles.js";
import { noEnvoy } from "./installation.js";
import { RunningEnvoy } from "./running-envoy.js";

const HOST = "example.com";

describe.skipIf(noEnvoy)("a filter that traps", () => {
  const many = Object.fromEntries(Array.from({ length: MOST_HEADERS }, (_, i) => [`x-${i}`, "1"]));

  afterAll(removeModules);

  it("fails the request at hand, and is back by itself with the bundle that it had", async () => {
    const bundle = bundleFrom([hostRules([route(prefix("/"), answer("sound"))])]);
    const envoy = await RunningEnvoy.start({ bundle, filter: trappingFilter() });
    try {
      expect((await envoy.get(HOST, "/")).body).toBe("sound");
      for (let i = 0; i < 3; i++) {
        expect((await envoy.get(HOST, "/", many)).status).toBe(503);
        await envoy.until(async () => (await envoy.get(HOST, "/")).body === "sound", "serves again after a trap");
      }
    } finally {
      await envoy.close();
    }
  });

  it("takes requests of its worker along that have no answer yet, since what is to be done to their answers is lost", async () => {
    let release: (() => void) | undefined;
    const peer = await httpPeer((_, response) => {
      release = () => response.setHeader("x-secret", "1").end("late");
    });
    const set = peers("slow", [peer.port]);
    const hides = {
      kind: "proxy" as const,
      upstream: "slow",
      headers: [{ op: "hide-response" as const, name: "X-Secret" }],
    };
    const rules = hostRules([route(prefix("/"), answer("sound")), route(prefix("/slow"), hides)]);
    const ofPeer = upstream({ ...set, peers: set.peers.map((one) => ({ ...one, address: "127.0.0.1" })) });
    const envoy = await RunningEnvoy.start({
      bundle: bundleFrom([rules], [ofPeer]),
      filter: trappingFilter(),
    });
    try {
      const underWay = envoy.get(HOST, "/slow");
      await envoy.until(async () => release !== undefined, "has sent the request on");
      expect((await envoy.get(HOST, "/", many)).status).toBe(503);
      await envoy.until(async () => (await envoy.get(HOST, "/")).body === "sound", "serves again after a trap");
      release?.();
      expect(await underWay).toMatchObject({ status: 503, body: "" });
    } finally {
      await envoy.close();
      await peer.close();
    }
  });
});
