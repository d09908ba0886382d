import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing, eventually } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { keyOf, proxyHost, upstreamStep } from "../support/plans.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const NAMES = ["one", "two"];
/** Of each upstream. So many at once that dozens of records in `requests.lua` have the place of another one. */
const REQUESTS = 400;

interface Counters {
  workers: { peers: Record<string, Record<string, { codes: number[] }>> }[];
}

/** A peer that answers with its name, and nobody before it is told to. */
async function holdingPeer(name: string) {
  const held: ServerResponse[] = [];
  const { port } = closing(await httpPeer((_request, response) => void held.push(response)));
  const release = () => {
    for (const response of held.splice(0)) response.end(name);
  };
  return { port, held, release };
}

describe.skipIf(noNginx)("hundreds of requests that one worker has under way at once", () => {
  it("each go to their own upstream, are counted for its peer, and give back their place at it", async () => {
    const peers = await Promise.all(NAMES.map(holdingPeer));
    const steps = NAMES.flatMap((name, i) => [
      upstreamStep(name, [peers[i].port], {}, { limits: { maxConns: REQUESTS } }),
      proxyHost(`${name}.example.com`, name),
    ]);
    const nginx = await RequestNginx.start(steps, { connections: 4096 });
    const rounds = 3;
    // A place that was not given back in one round is missing in the next: 502.
    for (let round = 0; round < rounds; round++) {
      const asked = Array.from({ length: REQUESTS }, () =>
        NAMES.map((name) => ask(nginx.http, { host: `${name}.example.com` })),
      ).flat();
      const answers = Promise.all(asked);
      let ended = false;
      const end = () => {
        ended = true;
      };
      answers.then(end, end);
      await eventually(() => ended || peers.every(({ held }) => held.length === REQUESTS), 60_000);
      for (const { release } of peers) release();
      const wrong = (await answers).filter(({ status, body }, i) => status !== 200 || body !== NAMES[i % NAMES.length]);
      expect(wrong).toEqual([]);
      await nginx.logLines((round + 1) * asked.length);
    }
    const [worker] = ((await nginx.client.counters()) as Counters).workers;
    for (const [i, name] of NAMES.entries()) {
      expect(worker.peers[keyOf(name)][`127.0.0.1:${peers[i].port}`].codes).toEqual([0, rounds * REQUESTS, 0, 0, 0]);
    }
  });
});
