/** OpenNJet that we drive, as `njet-kic run --proxy opennjet` does, and one with a configuration that is written by hand. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownOpenNjet } from "../../controller/proxies/opennjet/make-opennjet.js";
import { type Carrier, moduleFiles, type OpenNjetInstallation } from "../../controller/proxies/opennjet/parts.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import { closedPort } from "../../test/support/peers.js";
import { Driven, OUR_OPTIONS, Running, temporaryFolder } from "../nginx/contestants.js";
import type { StaticOptions } from "../nginx/static-configuration.js";

/** More than the command has by default: 300 hosts with two paths each. */
const MOST_LOCATIONS = 700;

/** Starts an OpenNJet with a carrier. */
export function ourOpenNjet(carrier: Carrier) {
  return (workers: number, steps: readonly PlanStep[]): Promise<Driven> =>
    Driven.start(
      (context) =>
        ownOpenNjet(context, {
          balancer: "own",
          ...OUR_OPTIONS,
          carrier,
          workers,
          ...{ maxLocations: MOST_LOCATIONS, prefix: process.env.NJET_PREFIX, stats: undefined, user: undefined },
        }),
      steps,
    );
}

/** Its workers do not start without a broker; everything else is left out. */
export async function staticOpenNjet(
  { binary, env, modules }: OpenNjetInstallation,
  workers: number,
  textOf: (options: StaticOptions) => string,
): Promise<Running> {
  const folder = temporaryFolder();
  for (const name of ["data", "logs"]) mkdirSync(join(folder, name));
  const port = await closedPort();
  const file = join(folder, "njet.conf");
  const broker = join(modules, moduleFiles("core").helpers.broker);
  const main = ["cluster_name bench;", "node_name static;", `helper broker ${broker};`];
  writeFileSync(file, textOf({ folder, workers, port, main }));
  const errorLog = join(folder, "logs", "error.log");
  return await Running.start(folder, port, binary, ["-p", folder, "-e", errorLog, "-c", file], env).answering();
}
