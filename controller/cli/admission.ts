import { AdmissionServer, type AdmissionServerOptions } from "../admission/admission-server.js";
import { CertificateFiles } from "../admission/certificate-files.js";
import { AdmissionCounters } from "../observability/admission-counters.js";
import type { ControllerMetrics } from "../observability/controller-metrics.js";

export interface AdmissionOptions {
  /** Port of the validating webhook; 0 takes a free one. Undefined: there is none. */
  validatingWebhook?: number;
  validatingWebhookAddress: string;
  /** Folder with tls.crt and tls.key; they may come and change while it runs. */
  validatingWebhookCertificate?: string;
  /** PEM file of the authorities whose clients are let in; any client otherwise. */
  validatingWebhookClientCa?: string;
}

/** The open port of the validating webhook. */
export interface AdmissionEndpoint {
  port: number;
  close(): Promise<void>;
}

/** Throws an Error that names the option where the options do not fit each other. */
export function checkAdmissionOptions(options: Partial<AdmissionOptions> & { configDir?: string }): void {
  const { validatingWebhook, validatingWebhookCertificate, configDir } = options;
  if (validatingWebhook === undefined) return;
  if (configDir !== undefined) throw new Error("--validating-webhook: there is no API server that asks about a folder");
  if (validatingWebhookCertificate !== undefined) return;
  throw new Error(
    "--validating-webhook: needs --validating-webhook-certificate; an API server trusts only what it was told to trust",
  );
}

/**
 * Opens the port of the validating webhook, if there is to be one. A certificate that is not there yet is waited for: the
 * webhook is an extra, and must not keep the proxy from serving. Rejects where the port is taken.
 */
export async function openAdmission(
  options: AdmissionOptions,
  parts: Omit<AdmissionServerOptions, "counters" | "clientCertificates" | "now">,
  metrics: ControllerMetrics,
): Promise<AdmissionEndpoint | undefined> {
  const { validatingWebhook, validatingWebhookAddress, validatingWebhookCertificate: folder } = options;
  const clientCa = options.validatingWebhookClientCa;
  if (validatingWebhook === undefined || folder === undefined) return undefined;
  const counters = new AdmissionCounters();
  const server = new AdmissionServer({
    ...parts,
    counters,
    now: Date.now,
    clientCertificates: clientCa !== undefined,
  });
  const files = new CertificateFiles({
    folder,
    ...(clientCa === undefined ? {} : { clientCa }),
    logger: parts.logger,
    onChange: (context, chain) => {
      server.use(context);
      counters.certificate(chain);
    },
  });
  const { port } = await server.listen(validatingWebhookAddress, validatingWebhook);
  await files.start();
  metrics.admission = counters;
  return {
    port,
    async close() {
      files.close();
      await server.close();
    },
  };
}
