import { Agent, request } from "node:https";

export interface KubeAnswer {
  status: number;
  // The objects of the API are what the tests say they are.
  body: KubeObject;
  /** Texts of the Warning headers, which kubectl prints. */
  warnings: string[];
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Record<string, unknown> & { name: string; namespace?: string };
  [field: string]: unknown;
}

const PLURALS: Record<string, string> = {
  Ingress: "ingresses",
  IngressClass: "ingressclasses",
  EndpointSlice: "endpointslices",
  Lease: "leases",
};
const CLUSTER_KINDS = [
  "Namespace",
  "IngressClass",
  "CustomResourceDefinition",
  "ClusterRole",
  "ClusterRoleBinding",
  "ValidatingWebhookConfiguration",
];

/** A plain client of the API server for tests, which shares nothing with the controller's own. */
export class KubeClient {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 });

  constructor(
    private readonly server: string,
    private readonly ca: string,
    private readonly token: string,
  ) {}

  /** Creates an object, or replaces the one that is there. */
  async apply(object: KubeObject): Promise<KubeObject> {
    const created = await this.raw("POST", collection(object), object);
    if (created.status === 201) return created.body;
    if (created.status !== 409) throw problem(created, object);
    return this.patch(object, object);
  }

  async applyAll(objects: readonly KubeObject[]): Promise<void> {
    for (const object of objects) await this.apply(object);
  }

  /** Changes an object by a JSON merge patch. */
  async patch(object: KubeObject, change: unknown, subresource = ""): Promise<KubeObject> {
    const answer = await this.raw("PATCH", pathOf(object) + subresource, change, "application/merge-patch+json");
    if (answer.status !== 200) throw problem(answer, object);
    return answer.body;
  }

  async get(object: KubeObject): Promise<KubeObject | undefined> {
    const answer = await this.raw("GET", pathOf(object));
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw problem(answer, object);
    return answer.body;
  }

  async delete(object: KubeObject): Promise<void> {
    const answer = await this.raw("DELETE", pathOf(object));
    if (answer.status !== 200 && answer.status !== 202 && answer.status !== 404) throw problem(answer, object);
  }

  async list(path: string): Promise<KubeObject[]> {
    const answer = await this.raw("GET", path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return (answer.body as unknown as { items: KubeObject[] }).items;
  }

  /** Sends a request and returns the answer, whatever its status. */
  raw(method: string, path: string, body?: unknown, type = "application/json"): Promise<KubeAnswer> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${this.token}`, "content-type": type };
      const sent = request(
        this.server + path,
        { method, headers, ca: this.ca, agent: this.#agent, timeout: 10_000 },
        (answer) => {
          let text = "";
          answer.setEncoding("utf8").on("data", (part: string) => {
            text += part;
          });
          answer.on("error", reject);
          answer.on("end", () =>
            resolve({
              status: answer.statusCode ?? 0,
              body: parsed(text),
              warnings: warningsOf(answer.rawHeaders),
            }),
          );
        },
      );
      sent.on("timeout", () => sent.destroy(new Error("the API server does not answer")));
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}

/** `299 - "text"`, one in each header (RFC 7234 5.5). */
function warningsOf(headers: readonly string[]): string[] {
  const values = headers.filter((_, index) => index % 2 === 1 && /^warning$/i.test(headers[index - 1]));
  return values.map((value) => value.replace(/^299 - "(.*)"$/, "$1").replaceAll(/\\(.)/g, "$1"));
}

export function collection({ apiVersion, kind, metadata }: KubeObject): string {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = CLUSTER_KINDS.includes(kind) ? "" : `/namespaces/${metadata.namespace ?? "default"}`;
  return `${root}${scope}/${PLURALS[kind] ?? `${kind.toLowerCase()}s`}`;
}

export function pathOf(object: KubeObject): string {
  return `${collection(object)}/${object.metadata.name}`;
}

function problem(answer: KubeAnswer, object: KubeObject): Error {
  return new Error(`${object.kind} ${object.metadata.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

function parsed(text: string): KubeObject {
  try {
    return JSON.parse(text);
  } catch {
    return { apiVersion: "", kind: "", metadata: { name: "" }, text };
  }
}
