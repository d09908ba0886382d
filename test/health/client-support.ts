/** Clients of the probe process, and peers, for tests. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HealthClient, type HealthClientOptions } from "../../controller/health/health-client.js";
import type { ObjectEvent } from "../../controller/observability/events.js";
import { createLogger } from "../../controller/observability/logger.js";
import type { PeerState } from "../../core-wasm/binding/source.js";
import { cleanup, closing } from "../support/harness.js";
import { httpPeer } from "../support/peers.js";
import { check, until, upstream } from "./health-support.js";

export const KEY = "VirtualServer/default/shop/api";
/** Short enough for tests; nothing waits for it but conditions. */
export const often = (changes: Parameters<typeof check>[0] = {}) => check({ interval: 20, ...changes });

/** A client with all that it tells. */
export function startClient(options: Partial<HealthClientOptions> = {}) {
  const log: Record<string, unknown>[] = [];
  const events: ObjectEvent[] = [];
  /** States as a proxy has them: `upstream address port`. */
  const states = new Map<string, PeerState>();
  const transitions: string[] = [];
  let counts: Record<string, number> = {};
  const client = closing(
    new HealthClient({
      logger: createLogger({ sink: { write: (line) => log.push(JSON.parse(line)) }, now: Date.now }),
      events: { record: (event) => events.push(event) },
      setPeerStates: (changed) => {
        for (const one of changed) states.set(`${one.upstream} ${one.address} ${one.port}`, one.state);
      },
      metrics: {
        peerTransition: (key, from, to) => transitions.push(`${key} ${from} ${to}`),
        checkedPeers: (now) => {
          counts = { ...now };
        },
      },
      ...options,
    }),
  );
  const set = (key: string, ids: string[], healthCheck = often()) =>
    client.update(new Map([[key, upstream(key, ids, healthCheck)]]));
  return { client, log, events, states, transitions, set, counts: () => counts };
}

/** An HTTP peer that is well or not. */
export async function moodyPeer() {
  const peer = closing(await httpPeer((_request, response) => response.writeHead(mood.status).end(`${mood.asked++}`)));
  const mood = { status: 200, asked: 0, id: `127.0.0.1:${peer.port}`, name: `127.0.0.1 ${peer.port}`, peer };
  return mood;
}

export function makeRunDir(): string {
  const folder = mkdtempSync(join(tmpdir(), "njet-kic-run-"));
  cleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie would still have its number.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Ends a process after the test, if it is still there. */
export function endAfterwards(pid: number): void {
  cleanup(() => isAlive(pid) && process.kill(pid, "SIGKILL"));
}

export async function pidOf(client: HealthClient): Promise<number> {
  const pid = await until("there is a probe process", () => client.pid);
  endAfterwards(pid);
  return pid;
}
