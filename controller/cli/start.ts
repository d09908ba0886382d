import { fileURLToPath } from "node:url";
import type { Core } from "../../core-wasm/binding/core.js";
import { loadPaths } from "../files/load-paths.js";
import { selfSigned } from "../proxies/self-signed.js";
import { launch, type Running, type RunOptions } from "./run.js";
import { sampleAddresses, startSampleUpstreams } from "./sample-upstreams.js";

/** From the compiled controller, and from the sources. */
const SAMPLE = fileURLToPath(new URL("../../../examples/cafe", import.meta.url));
const SAMPLE_HOST = "cafe.example.com";
const DAY = 86_400_000;

/** `start` without a folder: serves the sample with upstreams and a certificate of its own. Resolves with the exit status. */
export async function runSample(core: Core, options: Omit<RunOptions, "configDir">): Promise<number> {
  const { objects } = await loadPaths([SAMPLE]);
  const addresses = sampleAddresses(objects);
  const upstreams = await startSampleUpstreams(addresses);
  const running = await launch(core, { ...options, configDir: SAMPLE });
  await running.controller.change([sampleSecret()]);
  await running.watch(SAMPLE);
  process.stdout.write(introduction(running.ports));
  await running.stopped;
  await running.stop();
  for (const server of upstreams) server.close();
  return 0;
}

/** The Secret that the sample's Ingress names: made anew at each start, so that no key lies in the repository. */
function sampleSecret() {
  const now = Date.now();
  const pair = selfSigned({
    commonName: SAMPLE_HOST,
    hosts: [SAMPLE_HOST],
    notBefore: now - DAY,
    notAfter: now + 30 * DAY,
  });
  const encode = (text: string) => Buffer.from(text).toString("base64");
  const object = {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: { name: "cafe-tls", namespace: "default" },
    data: { "tls.crt": encode(pair.chain), "tls.key": encode(pair.key) },
  };
  return { kind: "Secret" as const, namespace: "default", name: "cafe-tls", object };
}

function introduction({ http, https, metrics }: Running["ports"]): string {
  const base = `http://127.0.0.1:${http}`;
  const cafe = `-H 'Host: ${SAMPLE_HOST}' ${base}`;
  const watched = metrics === undefined ? "" : `\n  metrics: http://127.0.0.1:${metrics}/stats`;
  const menu = "-H 'Host: menu.example.com'";
  return `
njet-kic serves the objects of ${SAMPLE}
  ${base}    https://127.0.0.1:${https}    (hosts ${SAMPLE_HOST} and menu.example.com)${watched}

Worth trying:
  curl ${cafe}/
  curl ${cafe}/tea/green
  curl -k --resolve ${SAMPLE_HOST}:${https}:127.0.0.1 https://${SAMPLE_HOST}:${https}/coffee
  curl ${menu} ${base}/drinks
  curl -H 'X-Drink: coffee' ${menu} ${base}/drinks
  curl -b 'drink=latte' ${menu} ${base}/drinks
  curl -X POST ${menu} ${base}/drinks/espresso
  curl ${menu} '${base}/tables/7/bill?tip=2'
  curl ${menu} '${base}/tables?guest=ada'
  curl ${menu} ${base}/special
  curl -i ${menu} ${base}/old-menu

Why a request goes where it goes:
  npm run --silent cli -- match --config-dir examples/cafe --explain -H 'X-Drink: coffee' http://menu.example.com/drinks

Change a file in that folder and send the request again: no restart. Ctrl-C ends it.

`;
}
