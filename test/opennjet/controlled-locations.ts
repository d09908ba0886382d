/** The carrier locations over a double, with certificates, kept in step by a controller. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Controller } from "../../controller/controller.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { OpenNjetApi } from "../../controller/proxies/opennjet/api/index.js";
import { CertificateFiles } from "../../controller/proxies/opennjet/certificate-files.js";
import { CertificateMaps } from "../../controller/proxies/opennjet/certificate-maps.js";
import { certificateTable, type FilePair } from "../../controller/proxies/opennjet/certificate-table.js";
import { systemClock } from "../../controller/proxies/opennjet/clock.js";
import { OpenNjetProxy } from "../../controller/proxies/opennjet/opennjet-proxy.js";
import type { Applied } from "../../controller/proxies/proxy.js";
import type { Plan } from "../../controller/reconcile/plan.js";
import { makeFolder } from "../cli/cli-support.js";
import { changeOf, parseYaml, removalOf } from "../model/model-support.js";
import { patternChecker } from "../support/core.js";
import { cleanup } from "../support/harness.js";
import { changing } from "./locations-changing.js";

export interface ControlledOptions {
  maxLocations?: number;
  mostHosts?: number;
  /** Files for names without a certificate. */
  others: FilePair;
}

/** A controller that has begun, without objects. */
export async function controlledLocations({ maxLocations, mostHosts, others }: ControlledOptions) {
  const { double, carrier, calls, http } = await changing(maxLocations);
  const api = new OpenNjetApi({ origin: double.origin });
  // As the configuration declares them.
  await api.maps.add(certificateTable(new Map(), others).maps);
  const folder = makeFolder();
  const parts = { workers: undefined, logger: silentLogger };
  const files = new CertificateFiles(folder);
  const certificates = new CertificateMaps({
    maps: api.maps,
    files,
    others,
    ...parts,
    clock: systemClock,
    ...(mostHosts !== undefined && { mostHosts }),
  });
  const proxy = new OpenNjetProxy({ carrier, api, certificates, ...parts, release: async () => undefined });
  cleanup(() => proxy.close(0));

  const applied: Applied[] = [];
  const apply = proxy.apply.bind(proxy);
  proxy.apply = async (plan: Plan) => {
    const result = await apply(plan);
    applied.push(result);
    return result;
  };
  const told: string[] = [];
  const controller = new Controller({
    checker: patternChecker(),
    proxy,
    logger: silentLogger,
    onApplied: (objects) => told.push(...objects),
  });
  await controller.started();
  calls();
  /** Gives what was refused. */
  const change = async (changes: Parameters<Controller["change"]>[0]) => {
    told.length = 0;
    applied.length = 0;
    await controller.change(changes);
    return applied.flatMap(({ failures }) => failures);
  };
  return {
    http,
    calls,
    certificates,
    set: (...yaml: string[]) => change(yaml.flatMap(parseYaml).map(changeOf)),
    remove: (...yaml: string[]) => change(yaml.flatMap(parseYaml).map(removalOf)),
    /** What an operator sees of an Ingress. */
    problems: (name: string) => controller.model.problems({ kind: "Ingress", namespace: "default", name })?.problems,
    /** The objects whose status was to be written anew after the last change. */
    told: () => [...told],
    /** Paths of the files of certificates. */
    files: () => readdirSync(folder).map((name) => join(folder, name)),
    /** The maps of certificates as a worker has them: by variable, the value of each key. */
    async maps() {
      const maps = (await api.maps.list()).filter(({ keyTo }) => keyTo.startsWith("$njet_certificate"));
      calls();
      return Object.fromEntries(
        maps.map(({ keyTo, values }) => [
          keyTo,
          Object.fromEntries(values.map(({ valueFrom, valueTo }) => [valueFrom, valueTo])),
        ]),
      );
    },
  };
}
