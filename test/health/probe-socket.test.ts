import { existsSync, readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { frameOf } from "../../controller/health/frames.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { isAlive, KEY, makeRunDir, moodyPeer, pidOf, startClient } from "./client-support.js";
import { until } from "./health-support.js";

cleanUpAfterEach();

describe("the socket of the probe process", () => {
  /** Sends bytes and resolves when the other side has closed; gives what it said. */
  function speak(path: string, ...parts: Buffer[]): Promise<string> {
    return new Promise((resolve, reject) => {
      let heard = "";
      const socket: Socket = connect(path, () => {
        for (const part of parts) socket.write(part);
      });
      socket.on("data", (part) => {
        heard += part.toString("latin1");
      });
      socket.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE" && error.code !== "ECONNRESET") reject(error);
      });
      socket.on("close", () => resolve(heard));
    });
  }

  it("tells nothing to who has no token, whatever it sends, and goes on", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const { client, set, states } = startClient({ runDir });
    set(KEY, [mood.id]);
    client.ready();
    await until("it is up", () => states.size === 1);
    const pid = await pidOf(client);
    const folder = join(runDir, "health");
    const path = join(folder, readdirSync(folder).find((name) => name.endsWith(".sock"))!);
    const hello = (token: unknown) => frameOf({ type: "hello", version: 1, token });
    for (const bytes of [
      Buffer.from("GET / HTTP/1.1\r\n\r\n"),
      Buffer.alloc(1_000_000, 255),
      Buffer.from("\0\0\x04\x01"),
      frameOf({ type: "synced" }),
      frameOf({ type: "remove", key: KEY }),
      frameOf(null),
      hello("0".repeat(64)),
      hello(""),
      hello({ length: 64 }),
    ]) {
      expect(await speak(path, bytes)).toBe("");
    }
    // Its own controller is cut off for what is no message, and says everything anew.
    const { token } = JSON.parse(readFileSync(join(folder, "process.json"), "utf8"));
    const heard = await speak(path, hello(token), Buffer.from("\xff\xff\xff\xff", "latin1"));
    expect(heard).toContain('"welcome"');
    expect(isAlive(pid)).toBe(true);
  });

  it("ends the process for a controller of another version", async () => {
    const mood = await moodyPeer();
    const runDir = makeRunDir();
    const { client, set } = startClient({ runDir });
    set(KEY, [mood.id]);
    client.ready();
    const pid = await pidOf(client);
    await client.close();
    const folder = join(runDir, "health");
    const { socket, token } = JSON.parse(readFileSync(join(folder, "process.json"), "utf8"));
    await speak(join(folder, socket), frameOf({ type: "hello", version: 2, token }));
    await until("it is gone", () => !isAlive(pid));
    expect(existsSync(join(folder, socket))).toBe(false);
  });
});
