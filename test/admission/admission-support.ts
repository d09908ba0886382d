import { request } from "node:https";
import { AdmissionServer, type AdmissionServerOptions } from "../../controller/admission/admission-server.js";
import { AdmissionCounters } from "../../controller/observability/admission-counters.js";
import { silentLogger } from "../../controller/observability/logger.js";
import { modelOfYaml, parseYaml, type SourceObject } from "../model/model-support.js";
import { makeCertificate } from "../support/certificates.js";
import { patternChecker } from "../support/core.js";
import { closing } from "../support/harness.js";
import { type Answer, whole } from "../support/http-client.js";

export const NOW = Date.parse("2024-06-01T00:00:00Z");

/** The AdmissionReview that an API server sends for an object. */
export function reviewFor(object: SourceObject, more: Record<string, unknown> = {}): Record<string, unknown> {
  const [group, version] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : ["", object.apiVersion];
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
      kind: { group, version, kind: object.kind },
      resource: { group, version, resource: `${object.kind.toLowerCase()}s` },
      name: object.metadata.name,
      namespace: object.metadata.namespace ?? "default",
      operation: "CREATE",
      userInfo: { username: "jane", groups: ["developers"] },
      object,
      oldObject: null,
      dryRun: false,
      options: { apiVersion: "meta.k8s.io/v1", kind: "CreateOptions" },
      ...more,
    },
  };
}

export const parseOne = (text: string): SourceObject => parseYaml(text)[0];

/** A VirtualServer whose one route is `route`. */
export function server(name: string, host: string, created = "", route = "{path: /, action: {return: {body: x}}}") {
  const age = created === "" ? "" : `, creationTimestamp: '${created}'`;
  return `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: ${name}${age}}, spec: {
    host: ${host}, routes: [${route}]}}`;
}

/** An Ingress with these paths at one host; its service is there in no model. */
export function ingress(name: string, host: string, paths: string[], created = "", annotations = "{}"): string {
  const age = created === "" ? "" : `, creationTimestamp: '${created}'`;
  const rules = paths.map(
    (path) => `{path: ${path}, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}`,
  );
  return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ${name}${age}, annotations: ${annotations}},
    spec: {rules: [{host: ${host}, http: {paths: [${rules}]}}]}}`;
}

export const CERTIFICATE = makeCertificate("webhook", "webhook.example.com");

export interface StartedAdmission {
  port: number;
  counters: AdmissionCounters;
  server: AdmissionServer;
}

/** A webhook over the model of a YAML text, on a free port of loopback; closed after the test. */
export async function startAdmission(
  objects = "",
  options: Partial<AdmissionServerOptions> & { ca?: string } = {},
): Promise<StartedAdmission> {
  const counters = new AdmissionCounters();
  const { ca, ...rest } = options;
  const admission = closing(
    new AdmissionServer({
      model: modelOfYaml(objects),
      checker: patternChecker(),
      follows: () => true,
      complete: () => true,
      now: () => NOW,
      counters,
      logger: silentLogger,
      clientCertificates: ca !== undefined,
      ...rest,
    }),
  );
  admission.use({ cert: CERTIFICATE.chain, key: CERTIFICATE.key, ...(ca && { ca }) });
  const { port } = await admission.listen("127.0.0.1", 0);
  return { port, counters, server: admission };
}

export interface PostOptions {
  path?: string;
  method?: string;
  type?: string;
  ca?: string;
  /** Name that the certificate has to be made for. */
  servername?: string;
  /** The client's own certificate. */
  pair?: { chain: string; key: string };
}

/** Sends a body, JSON unless it is text or bytes, and verifies who answers. */
export function post(port: number, body: unknown, options: PostOptions = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { pair } = options;
    const sent = request(
      {
        host: "127.0.0.1",
        port,
        path: options.path ?? "/validate?timeout=5s",
        method: options.method ?? "POST",
        headers: { "Content-Type": options.type ?? "application/json" },
        ca: options.ca ?? CERTIFICATE.chain,
        servername: options.servername ?? "webhook.example.com",
        agent: false,
        ...(pair && { cert: pair.chain, key: pair.key }),
      },
      (response) => whole(response).then(resolve, reject),
    );
    sent.on("error", reject);
    sent.end(typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  });
}

export interface Response {
  uid: string;
  allowed: boolean;
  warnings?: string[];
  status?: {
    code: number;
    reason: string;
    message: string;
    details: { kind: string; name: string; causes: { reason: string; field: string; message: string }[] };
  };
}

/** The response of the review that answers `body`. */
export async function askAdmission(port: number, body: unknown): Promise<Response> {
  const { status, body: text } = await post(port, body);
  if (status !== 200) throw new Error(`${status} ${text}`);
  return (JSON.parse(text) as { response: Response }).response;
}
