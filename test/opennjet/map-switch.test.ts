/** What becomes of a word about the map of certificates that the workers' shared state does not take. */
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { ControlClient, ControlError } from "../../controller/proxies/nginx/control-client.js";
import { makePiece, PIECE } from "../../controller/proxies/nginx/piece.js";
import { MapSwitchRefusedError, mapSwitch } from "../../controller/proxies/opennjet/map-switch.js";
import { makeFolder } from "../cli/cli-support.js";
import { installation, noNginx } from "../nginx/installation.js";
import { StateNginx } from "../nginx/state-nginx.js";
import { cleanUpAfterEach, cleanup, closing } from "../support/harness.js";

cleanUpAfterEach();

const VERSION = "0123456789abcdef";

/** A switch over a control endpoint that answers every request with this. */
async function over(status: number, answer: object) {
  const path = join(makeFolder(), "control.sock");
  const server = createServer((_request, response) => response.writeHead(status).end(JSON.stringify(answer)));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  cleanup(() => server.close());
  return mapSwitch(closing(new ControlClient(path, "t".repeat(32))), silentLogger);
}

async function errorOf(done: Promise<void>): Promise<unknown> {
  return await done.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("A word about the map of certificates", () => {
  it.each([
    [507, "PROXY_STATE_FULL", "--nginx-state-size"],
    [400, "PROXY_STEP_FAILED", "see the log of opennjet"],
  ])(
    "that is refused with %i is refused for good, as %s, with the reason and a remedy",
    async (status, code, remedy) => {
      const workers = await over(status, { code: "STATE_ANY", message: "for a reason" });
      for (const version of [undefined, VERSION]) {
        const error = await errorOf(workers.set(version));
        expect(error).toBeInstanceOf(MapSwitchRefusedError);
        expect(error).toMatchObject({ code, message: expect.stringContaining("for a reason") });
        expect((error as Error).message).toContain(remedy);
      }
    },
  );

  it("that another writer keeps from being taken is not refused for good", async () => {
    const workers = await over(503, { code: "STATE_BUSY", message: "another writer is at work" });
    expect(await errorOf(workers.set(undefined))).toBeInstanceOf(ControlError);
  });
});

describe.skipIf(noNginx)("Workers of a server", () => {
  it("whose shared state has no room for a version refuse it, and take that there is none", async () => {
    const nginx = await new StateNginx(await installation(), { dict: "1m" }).start();
    const workers = mapSwitch(nginx.client, silentLogger);
    await workers.set(VERSION);
    await workers.set(undefined);
    const large = (key: string, size: number) => makePiece(PIECE.shard, key, Buffer.alloc(size, "x"));
    await nginx.client.post([large("a", 800_000)]);
    for (let i = 0; i < 100; i++) await nginx.client.post([large(`b${i}`, 2_000)]);
    const error = await errorOf(workers.set(VERSION));
    expect(error).toMatchObject({ name: "MapSwitchRefusedError", code: "PROXY_STATE_FULL" });
    await workers.set(undefined);
  });
});
