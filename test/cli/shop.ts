/** A shop in a folder, the controllers that serve it one after the other, and what a client sees meanwhile. */
import { existsSync } from "node:fs";
import { expect } from "vitest";
import type { ControlClient } from "../../controller/proxies/nginx/control-client.js";
import { closing, eventually } from "../support/harness.js";
import { Load } from "../support/load.js";
import { httpPeer } from "../support/peers.js";
import { RawClient } from "../support/raw-client.js";
import { makeFolder, put, type Serving, startRun } from "./cli-support.js";
import { ingress, service } from "./objects.js";

export const HOST = "shop.example.com";

/** A peer that answers with its name. */
export async function namedPeer(name: string) {
  return closing(await httpPeer((_request, response) => response.end(name)));
}

/** A folder with the services `one` and `two`, and the host at `one`. */
export async function shopFolder(): Promise<string> {
  const [one, two] = [await namedPeer("one"), await namedPeer("two")];
  const folder = makeFolder();
  put(folder, "one.yaml", service("one", "127.0.0.1", one.port));
  put(folder, "two.yaml", service("two", "127.0.0.1", two.port));
  put(folder, "shop.yaml", ingress("shop", HOST, "one"));
  return folder;
}

export async function isClosed(port: number): Promise<boolean> {
  const client = await RawClient.plain(port).catch(() => undefined);
  client?.destroy();
  return client === undefined;
}

/** A controller at the ports of the one before. */
export async function again(first: Serving, folder: string, ...options: string[]): Promise<Serving> {
  return await startRun(folder, ...options, "--http-port", String(first.http), "--https-port", String(first.https));
}

/**
 * Kills the controller of a shop that its proxy outlives, moves the host to `two`, and starts another one, all under load; resolves with
 * that one when the host is moved. Expects that no request fails.
 */
export async function killedAndReplaced(first: Serving, folder: string, options: readonly string[]): Promise<Serving> {
  const load = new Load(first.http, HOST);
  await load.more(50);
  first.process.kill("SIGKILL");
  await first.ended;
  await load.more(200);
  put(folder, "shop.yaml", ingress("shop", HOST, "two"));
  const second = await again(first, folder, ...options);
  await eventually(() => load.latest === "two", 30_000);
  await load.stop();
  expect(load.failures).toEqual([]);
  return second;
}

/**
 * The same over a server with processes: the next controller takes it over as it is, and ends it when it is ended itself. `state` asks the
 * server's control socket.
 */
export async function takenOver(
  folder: string,
  options: readonly string[],
  state: ControlClient["state"],
): Promise<void> {
  const first = await startRun(folder, ...options);
  const processes = async () => {
    const { master, workers } = await state();
    return [master, ...workers.map(({ pid }) => pid)];
  };
  const before = await processes();
  const second = await killedAndReplaced(first, folder, options);
  expect(await processes()).toEqual(before);
  second.process.kill("SIGTERM");
  expect((await second.ended).status).toBe(0);
  expect(existsSync(`/proc/${before[0]}`)).toBe(false);
}
