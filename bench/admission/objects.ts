/** The objects of table `admission`. */
import type { ObjectChange } from "../../controller/model/routing-model.js";

const CREATED = "2024-01-01T00:00:00Z";

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: Record<string, unknown>;
  spec: unknown;
}

function change({ kind, ...rest }: Manifest & { kind: "Ingress" | "VirtualServer" | "Service" }): ObjectChange {
  return { kind, namespace: "default", name: String(rest.metadata.name), object: { kind, ...rest } };
}

/** An Ingress with three paths; `host` is its own one unless several are to share it. */
export function ingress(index: number, host = `site-${index}.example.com`): ObjectChange {
  const name = `site-${index}`;
  const backend = { service: { name, port: { number: 80 } } };
  const paths = ["/", `/api/${index}`, `/static/${index}`].map((path) => ({ path, pathType: "Prefix", backend }));
  return change({
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace: "default", creationTimestamp: CREATED, uid: `uid-${index}` },
    spec: {
      ingressClassName: "njet",
      rules: [{ host, http: { paths: host.startsWith("shared") ? paths.slice(1) : paths } }],
    },
  });
}

/** A VirtualServer with a condition, a split and a regex. */
export function virtualServer(index: number, host = `server-${index}.example.com`): ObjectChange {
  const name = `server-${index}`;
  const upstreams = ["stable", "next"].map((upstream) => ({ name: upstream, service: `site-${index}`, port: 80 }));
  const pass = (upstream: string) => ({ action: { pass: upstream } });
  return change({
    apiVersion: "k8s.njet.org/v1",
    kind: "VirtualServer",
    metadata: { name, namespace: "default", creationTimestamp: CREATED, uid: `uid-${index}` },
    spec: {
      ingressClassName: "njet",
      host,
      upstreams,
      routes: [
        {
          path: "/",
          matches: [{ conditions: [{ header: "x-beta", value: "yes" }], ...pass("next") }],
          ...pass("stable"),
        },
        {
          path: "/cart",
          splits: [
            { weight: 90, ...pass("stable") },
            { weight: 10, ...pass("next") },
          ],
        },
        { path: "~ ^/item/([0-9]+)$", action: { proxy: { upstream: "stable", rewritePath: "/items/$1" } } },
      ],
    },
  });
}

export function service(index: number): ObjectChange {
  return change({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `site-${index}`, namespace: "default" },
    spec: { ports: [{ port: 80 }] },
  });
}

/** `count` objects that bring routes, three Ingresses for each VirtualServer, and the Services that they name. */
export function objects(count: number): ObjectChange[] {
  return Array.from({ length: count }, (_, index) => [
    index % 4 === 3 ? virtualServer(index) : ingress(index),
    service(index),
  ]).flat();
}

/** The review that an API server sends, as text. */
export function reviewText({ kind, namespace, name, object }: ObjectChange, operation = "CREATE"): string {
  const group = kind === "Ingress" ? "networking.k8s.io" : "k8s.njet.org";
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { uid: "u", kind: { group, version: "v1", kind }, namespace, name, operation, object },
  });
}
