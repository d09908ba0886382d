#!/usr/bin/env node
import { isIP } from "node:net";
import { Command, InvalidArgumentError, Option } from "commander";
import { loadCore } from "../core-file.js";
import { SERVICE_ACCOUNT_FOLDER } from "../kubernetes/credentials.js";
import { CONTROLLER_NAME } from "../model/classes.js";
import { TrustedNetworks } from "../proxies/embedded/client-address.js";
import { NotAnswering } from "../proxies/nginx/control-client.js";
import { PartMissing } from "../proxies/nginx/parts.js";
import { checkAdmissionOptions } from "./admission.js";
import { type CompileOptions, runCompile } from "./compile.js";
import { type EnvoyResourceOptions, runEnvoyResource } from "./envoy-resource.js";
import { type LintOptions, runLint } from "./lint.js";
import { type MatchOptions, runMatch, runMatchFile } from "./match.js";
import { modelOptions } from "./model-options.js";
import { withNginx } from "./nginx-options.js";
import { withOpenNjet } from "./opennjet-options.js";
import { type RunOptions, runFolder } from "./run.js";
import { type ClusterRunOptions, runCluster } from "./run-cluster.js";
import { PROXY_NAMES } from "./serving-proxy.js";
import { runSample } from "./start.js";
import { PACKAGE_VERSION } from "./version.js";
import { type WebhookCertificateOptions, webhookCertificate } from "./webhook-certificate.js";

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65535) throw new InvalidArgumentError("a port is 0 to 65535");
  return value;
}

function metricsPort(text: string): number | "off" {
  return text === "off" ? text : port(text);
}

function series(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("a number of series, 1 or more");
  return value;
}

function seconds(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError("a number of seconds, 0 or more");
  return value;
}

function days(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > 36_500) throw new InvalidArgumentError("1 to 36500 days");
  return value;
}

function objectName(text: string): string {
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text)) throw new InvalidArgumentError("a name of Kubernetes");
  return text;
}

/** Gathers `-H 'Name: value'` options; repeated headers are kept apart until the request is made. */
function header(text: string, before: Record<string, string>): Record<string, string> {
  const colon = text.indexOf(":");
  if (colon < 1) throw new InvalidArgumentError("a header is 'Name: value'");
  const name = text.slice(0, colon).trim().toLowerCase();
  const value = text.slice(colon + 1).trim();
  const known = before[name];
  return { ...before, [name]: known === undefined ? value : `${known}${name === "cookie" ? "; " : ", "}${value}` };
}

function address(text: string): string {
  if (isIP(text) === 0) throw new InvalidArgumentError("an IP address, such as 127.0.0.1 or ::");
  return text;
}

function networks(text: string): string[] {
  const list = text.split(",").filter((part) => part !== "");
  try {
    new TrustedNetworks(list);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return list;
}

function words(text: string): string[] {
  return text.split(",").filter((part) => part !== "");
}

function serviceName(text: string): string {
  if (!/^[^/]+\/[^/]+$/.test(text)) throw new InvalidArgumentError("a Service is namespace/name");
  return text;
}

function withModel(command: Command): Command {
  for (const option of modelOptions()) command.addOption(option);
  return command;
}

function withServing(command: Command): Command {
  return withOpenNjet(withNginx(withModel(command)))
    .addOption(
      // An image says by its environment what is inside: a Deployment with arguments of its own takes the place of its command.
      new Option("--proxy <name>", "proxy to drive").choices(PROXY_NAMES).default(PROXY_NAMES[0]).env("NJET_KIC_PROXY"),
    )
    .option("--http-port <n>", "port for http", port, 8080)
    .option("--https-port <n>", "port for https", port, 8443)
    .option("--address <ip>", "address to bind both ports to", address, "::")
    .option("--default-certificate <dir>", "folder with tls.crt and tls.key for unknown names")
    .addOption(
      new Option("--trusted-proxies <cidrs>", "networks whose X-Forwarded-* headers count, comma-separated")
        .argParser(networks)
        .default([], "none"),
    )
    .option("--drain-seconds <n>", "time for requests under way after SIGTERM", seconds, 30)
    .option("--no-access-log", "write no access log")
    .option("--metrics-address <ip>", "address to bind the port for metrics to", address, "127.0.0.1")
    .addOption(
      new Option("--metrics-port <n>", "port for metrics, /healthz and /readyz; off for none")
        .argParser(metricsPort)
        .default(undefined, "12001"),
    )
    .addOption(
      new Option("--metrics-prefix <name>", "metrics of traffic are called <name>_vts_*")
        .choices(["njet", "nginx"])
        .default("njet"),
    )
    .option("--metrics-series <n>", "series that the metrics page holds at most", series, 100_000)
    .option(
      "--run-dir <dir>",
      "folder that stays over a restart: health checks, NGINX and OpenNJet go on while the controller is away",
    );
}

const MATCH_HELP = `
Exit status: 0 decided, 1 a line of --requests was no request, 2 nothing could be decided.

Examples:
  njet-kic match --config-dir examples/cafe --explain http://cafe.example.com/tea
  njet-kic match --config-dir examples/cafe --json -X POST -H 'Cookie: drink=latte' http://menu.example.com/drinks
  echo '{"url":"https://cafe.example.com/coffee"}' | njet-kic match --config-dir examples/cafe --requests -`;

const LINT_HELP = `
ERRORS.md says what each code means and what to do about it.

Examples:
  njet-kic lint examples/cafe
  njet-kic lint --json ingress.yaml services/`;

const COMPILE_HELP = `
Exit status: 0 written, 1 nothing is written because of --strict, 2 the folder can't be read or the file not be written.
The file holds no secrets. core-wasm/BUNDLE.md describes it.

Example:
  njet-kic compile --config-dir examples/cafe --out cafe.njkb`;

const ENVOY_RESOURCE_HELP = `
Exit status: 0 written, 2 the bundle is not sound, or a file can't be read or written. core-wasm/hosts/envoy/README.md tells more.

Example:
  njet-kic envoy-resource cafe.njkb --filter /etc/envoy/njet/envoy-filter.wasm --out /etc/envoy/njet/filter.pb`;

const program = new Command("njet-kic")
  .description("Ingress controller for OpenNJet and NGINX whose decisions are made by one WebAssembly core")
  .version(PACKAGE_VERSION)
  .showHelpAfterError("(--help lists the options)");

withServing(program.command("run"))
  .description("serve the objects of a cluster or, with --config-dir, of a folder; changes act without a restart")
  .option("--config-dir <dir>", "folder of YAML and JSON files, instead of a cluster")
  .option("--kubeconfig <file>", "kubeconfig of the cluster; without it the service account of the pod counts")
  .option("--service-account-dir <dir>", "folder with token, ca.crt and namespace", SERVICE_ACCOUNT_FOLDER)
  .option("--controller-class <name>", "spec.controller of the IngressClasses to serve", CONTROLLER_NAME)
  .addOption(
    new Option("--watch-namespace <names>", "namespaces to watch, comma-separated; may be repeated")
      .argParser((text: string, before: string[]) => [...before, ...words(text)])
      .default([], "all"),
  )
  .option("--watch-namespace-selector <labels>", "labels of further namespaces to watch, such as edge=public")
  .option("--publish-service <namespace/name>", "Service whose addresses go into status", serviceName)
  .addOption(
    new Option("--publish-status-address <addresses>", "addresses that go into status, comma-separated")
      .argParser((text: string, before: string[]) => [...before, ...words(text)])
      .default([], "none"),
  )
  .option("--leader-election-lease <name>", "Lease of the replicas that serve the same objects (njet-kic-CLASS)")
  .option("--leader-election-namespace <name>", "namespace of that Lease; our own if absent")
  .option("--validating-webhook <port>", "port of a webhook that the API server asks before it stores objects", port)
  .option("--validating-webhook-address <ip>", "address to bind that port to", address, "127.0.0.1")
  .option("--validating-webhook-certificate <dir>", "folder with its tls.crt and tls.key; renewed files are picked up")
  .option("--validating-webhook-client-ca <file>", "let only clients with a certificate of these authorities ask it")
  .action(async (options: ClusterRunOptions) => {
    checkAdmissionOptions(options);
    const core = await loadCore();
    const { configDir } = options;
    await finish(configDir === undefined ? runCluster(core, options) : runFolder(core, { ...options, configDir }));
  });

withServing(program.command("start"))
  .description("as run; without --config-dir, serve the sample in examples/cafe with upstreams of its own")
  .option("--config-dir <dir>", "folder of YAML and JSON files")
  .action(async (options: Omit<RunOptions, "configDir"> & { configDir?: string }) => {
    const core = await loadCore();
    const { configDir } = options;
    await finish(configDir === undefined ? runSample(core, options) : runFolder(core, { ...options, configDir }));
  });

withModel(program.command("match"))
  .description("print the decision for a request, or for each line of a file of requests")
  .argument("[url]", "URL of the request; its text is taken as it is written")
  .requiredOption("--config-dir <dir>", "folder of YAML and JSON files")
  .option("--json", "print JSON", false)
  .option("--explain", "print every rule that was tried, and why it was passed over", false)
  .option("-X, --method <method>", "method of the request", "GET")
  .addOption(
    new Option("-H, --header <header>", "header of the request, 'Name: value'; may be repeated")
      .argParser(header)
      .default({}, "none"),
  )
  .addOption(new Option("--client <ip>", "address of the client").argParser(address).default("127.0.0.1"))
  .option("--requests <file>", 'file with one JSON request a line: {"method","url","headers","client"}; - reads stdin')
  .addHelpText("after", MATCH_HELP)
  .action(async (url: string | undefined, options: MatchOptions & MatchInput) => {
    const core = await loadCore();
    const { requests, method, header: headers, client } = options;
    if ((url === undefined) === (requests === undefined))
      program.error("error: give either a URL or --requests <file>");
    const status =
      requests === undefined
        ? runMatch(core, { url: url ?? "", method, headers, client }, options, process.stdout, process.stderr)
        : runMatchFile(core, requests, options, process.stdout, process.stderr);
    await finish(status);
  });

withModel(program.command("compile"))
  .description("write the rules and peers of a folder as one file, for host programs of core.wasm")
  .requiredOption("--config-dir <dir>", "folder of YAML and JSON files")
  .requiredOption("--out <file>", "file to write; it is replaced whole, or stays as it is")
  .option("--strict", "write nothing if any object or file is Invalid", false)
  .addHelpText("after", COMPILE_HELP)
  .action(async (options: CompileOptions) => {
    await finish(runCompile(await loadCore(), options, process.stdout, process.stderr));
  });

program
  .command("envoy-resource")
  .description("write Envoy's filter with a bundle as a file that Envoy watches")
  .argument("<bundle>", "file that compile has written")
  .requiredOption(
    "--out <file>",
    "file to write, in a folder that Envoy watches; it is replaced whole, or stays as it is",
  )
  .requiredOption("--filter <path>", "path of envoy-filter.wasm on the machine of Envoy")
  .option("--name <name>", "name of the filter in http_filters", "njet_kic")
  .addOption(
    new Option("--clusters <what>", "what the header x-njet-cluster names: how peers are spoken to, or the upstream")
      .choices(["transport", "upstream"])
      .default("transport"),
  )
  .option("--decide-secret-file <file>", "let those who know the secret in this file ask what would be decided")
  .addHelpText("after", ENVOY_RESOURCE_HELP)
  .action(async (bundle: string, options: EnvoyResourceOptions) => {
    await finish(runEnvoyResource(await loadCore(), bundle, options, process.stdout, process.stderr));
  });

interface MatchInput {
  requests?: string;
  method: string;
  header: Record<string, string>;
  client?: string;
}

withModel(program.command("lint"))
  .description("list every object with its state and problems; exit status 1 if any is Invalid")
  .argument("<path...>", "files and folders")
  .option("--json", "print one JSON array", false)
  .addHelpText("after", LINT_HELP)
  .action(async (paths: string[], options: LintOptions) => {
    await finish(runLint(paths, options, await loadCore(), process.stdout));
  });

program
  .command("webhook-certificate")
  .description("make a certificate for the validating webhook; print it for kubectl apply --server-side -f -")
  .option("--namespace <name>", "namespace of the webhook's Service", objectName, "njet-ingress")
  .option("--service <name>", "name of that Service, and of the Secret", objectName, "njet-ingress-webhook")
  .option("--configuration <name>", "name of the ValidatingWebhookConfiguration", objectName, "njet-ingress")
  .option("--webhook <name>", "name of the webhook in it", objectName, "objects.validating.njet.org")
  .option("--days <n>", "days that the certificate is good for", days, 3650)
  .action((options: WebhookCertificateOptions) => {
    process.stdout.write(`${JSON.stringify(webhookCertificate(options, Date.now()), null, 2)}\n`);
  });

/** Sets the exit status; output that is still on its way gets out. */
async function finish(status: Promise<number>): Promise<void> {
  process.exitCode = await status;
}

// A reader of our output that goes away, as in `| head`, is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

program.parseAsync().catch((error: NodeJS.ErrnoException) => {
  const hint =
    error.code === "EADDRINUSE" && error.syscall === "listen"
      ? " (another program has the port; --http-port, --https-port, --metrics-port and --validating-webhook choose others)"
      : "";
  const code = error instanceof PartMissing || error instanceof NotAnswering ? ` (${error.code})` : "";
  process.stderr.write(`njet-kic: ${error.message}${hint}${code}\n`);
  process.exit(1);
});
