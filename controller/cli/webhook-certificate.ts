import { selfSigned } from "../proxies/self-signed.js";

export interface WebhookCertificateOptions {
  /** Namespace of the Service and the Secret. */
  namespace: string;
  /** Name of the Service through which the API server asks; the Secret has the same name. */
  service: string;
  /** Name of the ValidatingWebhookConfiguration. */
  configuration: string;
  /** Name of the webhook in it. */
  webhook: string;
  days: number;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/**
 * `webhook-certificate`: makes a key and a certificate for the webhook's Service, and prints what makes the API server trust
 * it, for `kubectl apply --server-side -f -`: the Secret, and of the ValidatingWebhookConfiguration nothing but the
 * caBundle. The certificate is its own authority, so that there is no other key that could be lost.
 */
export function webhookCertificate(options: WebhookCertificateOptions, now: number): unknown {
  const { namespace, service, configuration, webhook, days } = options;
  const host = `${service}.${namespace}.svc`;
  const { chain, key } = selfSigned({
    commonName: "njet-kic webhook",
    hosts: [host],
    notBefore: now - HOUR,
    notAfter: now + days * DAY,
  });
  const encode = (text: string) => Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "List",
    items: [
      {
        apiVersion: "v1",
        kind: "Secret",
        type: "kubernetes.io/tls",
        metadata: { name: service, namespace },
        data: { "tls.crt": encode(chain), "tls.key": encode(key) },
      },
      {
        apiVersion: "admissionregistration.k8s.io/v1",
        kind: "ValidatingWebhookConfiguration",
        metadata: { name: configuration },
        webhooks: [{ name: webhook, clientConfig: { caBundle: encode(chain) } }],
      },
    ],
  };
}
