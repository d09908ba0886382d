import { afterAll, beforeAll } from "vitest";
import { ApiClient } from "../../controller/kubernetes/api-client.js";
import { statusOf } from "../../controller/kubernetes/api-error.js";
import { systemClock } from "../../controller/kubernetes/clock.js";
import { ClusterSource, type ClusterSourceOptions } from "../../controller/kubernetes/cluster-source.js";
import { type Credentials, kubeconfig } from "../../controller/kubernetes/credentials.js";
import type { ObjectChange } from "../../controller/model/routing-model.js";
import { createLogger } from "../../controller/observability/logger.js";
import { refText } from "../../controller/resources/object-ref.js";
import { type ClusterOptions, kubectlProgram, kubePrograms, TestCluster } from "../real/kube/cluster.js";
import { Kubectl } from "../real/kube/kubectl.js";
import { cleanup } from "../support/harness.js";

/** The first build takes its time; with a warm cache a cluster is there in some seconds. */
const BUILD_TIME = 50 * 60_000;
/** Folder with the programs of the API server. */
export const programs = await kubePrograms();

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

/** kubectl, with every right in the cluster that `current` gives. */
export function useKubectl(current: () => TestCluster): () => Kubectl {
  let kubectl: Kubectl | undefined;
  beforeAll(async () => {
    const program = noCluster ? undefined : await kubectlProgram();
    if (program !== undefined) kubectl = new Kubectl(program, current().kubeconfig());
  }, BUILD_TIME);
  return () => kubectl as Kubectl;
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
