import { afterAll, beforeAll } from "vitest";
import { ApiClient } from "../../controller/kubernetes/api-client.js";
import { statusOf } from "../../controller/kubernetes/api-error.js";
import { systemClock } from "../../controller/kubernetes/clock.js";
import { ClusterSource, type ClusterSourceOptions } from "../../controller/kubernetes/cluster-source.js";
import { type Credentials, kubeconfig } from "../../controller/kubernetes/credentials.js";
import type { ObjectChange } from "../../controller/model/routing-model.js";
import { createLogger } from "../../controller/observability/logger.js";
import { refText } from "../../controller/resources/object-ref.js";
import type { KubeObject } from "../real/kube/client.js";
import { type ClusterOptions, kubePrograms, TestCluster } from "../real/kube/cluster.js";
import { cleanup } from "../support/harness.js";

/** The first build takes its time; with a warm cache a cluster is there in some seconds. */
const BUILD_TIME = 50 * 60_000;
const programs = await kubePrograms();

/** True where the real API server can't run; the reason has been printed. */
export const noCluster = programs === undefined;

/** A cluster for the tests of a file; `current()` gives it. */
export function useCluster(options: ClusterOptions = {}): () => TestCluster {
  let cluster: TestCluster | undefined;
  beforeAll(async () => {
    if (programs !== undefined) cluster = await TestCluster.start(programs, options);
  }, BUILD_TIME);
  afterAll(async () => cluster?.stop());
  return () => cluster as TestCluster;
}

/** The objects that a source has delivered, and how. */
export class Delivered {
  readonly objects = new Map<string, unknown>();
  readonly batches: ObjectChange[][] = [];
  readonly log: Record<string, unknown>[] = [];

  names(): string[] {
    return [...this.objects.keys()].sort();
  }

  take(changes: ObjectChange[]): void {
    this.batches.push(changes);
    for (const change of changes) {
      if (change.object === undefined) this.objects.delete(refText(change));
      else this.objects.set(refText(change), change.object);
    }
  }
}

/** Notes what the API server answers to watches, and lets a test step in before one begins. */
export class WatchingClient extends ApiClient {
  /** Status of refused watches and codes of ERROR events. */
  readonly failures: number[] = [];
  beforeWatch: (path: string) => Promise<void> = async () => undefined;

  override async *stream(path: string, silence: number, signal: AbortSignal): AsyncGenerator<unknown, void, undefined> {
    await this.beforeWatch(path);
    try {
      for await (const event of super.stream(path, silence, signal)) {
        const { type, object } = event as { type: string; object: { code?: number } };
        if (type === "ERROR") this.failures.push(object.code ?? 0);
        yield event;
      }
    } catch (error) {
      this.failures.push(statusOf(error));
      throw error;
    }
  }
}

/** A source that follows `cluster` until the test ends. */
export function follow(
  cluster: TestCluster,
  options: Partial<ClusterSourceOptions> & { kubeconfigFile?: string; credentials?: Credentials; later?: boolean } = {},
): { source: ClusterSource; seen: Delivered; client: WatchingClient } {
  const seen = new Delivered();
  const client = new WatchingClient(
    options.credentials ?? kubeconfig(options.kubeconfigFile ?? cluster.kubeconfig()),
    systemClock.now,
  );
  const source = new ClusterSource({
    client,
    clock: systemClock,
    random: Math.random,
    logger: createLogger({ sink: { write: (line) => seen.log.push(JSON.parse(line)) }, now: Date.now }),
    namespaces: [],
    deliver: async (changes) => seen.take(changes),
    ...options,
  });
  if (!options.later) source.start();
  cleanup(async () => {
    await source.close();
    await client.close();
  });
  return { source, seen, client };
}

export const namespace = (name: string, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, labels },
});

export const service = (name: string, space = "default"): KubeObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: space },
  spec: { ports: [{ port: 80 }] },
});

export const ingress = (name: string, className: string | undefined = "njet", space = "default"): KubeObject => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name, namespace: space },
  spec: {
    ...(className === "" ? {} : { ingressClassName: className }),
    rules: [
      {
        host: `${name}.example.com`,
        http: { paths: [{ path: "/", pathType: "Prefix", backend: { service: { name, port: { number: 80 } } } }] },
      },
    ],
  },
});

export const slice = (name: string, serviceName: string, addresses: string[], space = "default"): KubeObject => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name, namespace: space, labels: { "kubernetes.io/service-name": serviceName } },
  addressType: "IPv4",
  ports: [{ name: "", port: 8080, protocol: "TCP" }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});

export const ingressClass = (name: string, controller: string, isDefault = false): KubeObject => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name, annotations: { "ingressclass.kubernetes.io/is-default-class": String(isDefault) } },
  spec: { controller },
});

/** The smallest definition with which the API server takes objects of the kind. */
export function definition(kind: "VirtualServer" | "VirtualServerRoute"): KubeObject {
  const singular = kind.toLowerCase();
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${singular}s.k8s.njet.org` },
    spec: {
      group: "k8s.njet.org",
      scope: "Namespaced",
      names: { kind, singular, plural: `${singular}s`, listKind: `${kind}List` },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}

/** Resolves when the API server takes objects of the kinds that were defined. */
export async function installed({ admin }: TestCluster): Promise<void> {
  const path = (plural: string) => `/apis/k8s.njet.org/v1/${plural}`;
  const there = async () => {
    const answers = await Promise.all([
      admin.raw("GET", path("virtualservers")),
      admin.raw("GET", path("virtualserverroutes")),
    ]);
    return answers.every(({ status }) => status === 200);
  };
  while (!(await there())) await new Promise((resolve) => setTimeout(resolve, 50));
}

export const virtualServer = (name: string, spec: Record<string, unknown> = {}): KubeObject => ({
  apiVersion: "k8s.njet.org/v1",
  kind: "VirtualServer",
  metadata: { name, namespace: "default" },
  spec: {
    ingressClassName: "njet",
    host: `${name}.example.com`,
    upstreams: [{ name: "main", service: name, port: 80 }],
    routes: [{ path: "/", action: { pass: "main" } }],
    ...spec,
  },
});
