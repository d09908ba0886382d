/**
 * The probe process. Its controller starts it without arguments and writes what it needs to know, the token above all, to
 * its standard input: one JSON object. It prints `listening` when it can be spoken to.
 */
import { rmdirSync } from "node:fs";
import { dirname } from "node:path";
import { text } from "node:stream/consumers";
import { HealthTracker } from "../../core-wasm/binding/health-tracker.js";
import { loadCore } from "../core-file.js";
import { ProbeServer } from "./probe-server.js";
import { Probes, probeLimit } from "./probes.js";

/** What a probe process is told when it starts. */
export interface ProbeProcessSettings {
  /** Path of the unix socket. */
  socket: string;
  token: string;
  /** Milliseconds without a controller after which the process ends. */
  graceMs: number;
  /** The folder of the socket is this process's own, and goes with it. */
  ownFolder: boolean;
}

/** Standard output and error may be gone with the controller. */
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
// Not ours to answer: the controller decides when probing ends.
process.on("SIGINT", () => undefined);
process.on("SIGHUP", () => undefined);

async function main(): Promise<void> {
  const settings = JSON.parse(await text(process.stdin)) as ProbeProcessSettings;
  const core = await loadCore();
  const limit = probeLimit();
  const probes = new Probes(limit);
  const server = new ProbeServer({
    tracker: new HealthTracker(core),
    probe: probes.probe,
    limit,
    token: settings.token,
    graceMs: settings.graceMs,
    now: () => performance.now(),
    random: Math.random,
    onEnd: () => end(),
  });
  let ended = false;
  const end = () => {
    if (ended) return;
    ended = true;
    server.close();
    probes.close();
    if (settings.ownFolder) {
      try {
        rmdirSync(dirname(settings.socket));
      } catch {
        // Somebody has put something there, or has removed it.
      }
    }
    // Answers that are on their way have no reader any more.
    setImmediate(() => process.exit(0));
  };
  process.on("SIGTERM", end);
  await server.listen(settings.socket);
  process.stdout.write("listening\n");
}

await main();
