import { existsSync, renameSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { ApiSocket } from "../../controller/proxies/opennjet/api-socket.js";
import { makeFolder } from "../cli/cli-support.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";

cleanUpAfterEach();

async function listening(path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  cleanup(() => server.close());
  return server;
}

/** A socket at `path` that nobody listens on, as a process leaves it that is killed. */
async function leave(path: string): Promise<void> {
  const server = await listening(`${path}.made`);
  renameSync(`${path}.made`, path);
  await new Promise((resolve) => server.close(resolve));
}

describe("The socket of OpenNJet's control server", () => {
  it("is taken away where nobody has listened on it twice", async () => {
    const path = join(makeFolder(), "api.sock");
    const socket = new ApiSocket(path, silentLogger);
    await leave(path);
    await socket.look();
    expect(existsSync(path)).toBe(true);
    await socket.look();
    expect(existsSync(path)).toBe(false);
    await socket.look();
  });

  it("stays where it is listened on", async () => {
    const path = join(makeFolder(), "api.sock");
    await listening(path);
    const socket = new ApiSocket(path, silentLogger);
    for (let looks = 0; looks < 3; looks++) await socket.look();
    expect(existsSync(path)).toBe(true);
  });

  it("stays where it is another one than at the last look, or was listened on meanwhile", async () => {
    const path = join(makeFolder(), "api.sock");
    const socket = new ApiSocket(path, silentLogger);
    await leave(path);
    await socket.look();
    await leave(path);
    await socket.look();
    expect(existsSync(path)).toBe(true);
    renameSync(path, `${path}.old`);
    await listening(path);
    await socket.look();
    renameSync(`${path}.old`, path);
    await socket.look();
    expect(existsSync(path)).toBe(true);
  });
});
