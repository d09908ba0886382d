import type { Outcome, Route } from "../../core-wasm/binding/source.js";
import {
  PATH_ANNOTATIONS,
  readAnnotation,
  readUseRegex,
  TLS_NAMESPACE_ANNOTATIONS,
  warnAnnotations,
} from "./annotations.js";
import type { Field } from "./field.js";
import type {
  Balancing,
  CertificateRequest,
  IngressFragment,
  IngressRule,
  PortRef,
  UpstreamDeclaration,
} from "./fragments.js";
import { BALANCING_ANNOTATIONS, readIngressBalancing } from "./ingress-balancing.js";
import { checkApiVersion, type ObjectMeta } from "./metadata.js";
import { readHost, readObjectName, readPort, readPortName, readServiceName } from "./names.js";
import { type ObjectRef, refText } from "./object-ref.js";
import type { ParseContext } from "./parse-context.js";
import { readIngressPath } from "./path-rule.js";
import { crossReference } from "./reference.js";

/** Ingress networking.k8s.io/v1. Problems go to the list of `object`; the fragment counts only if none is an error. */
export function parseIngress(object: Field, meta: ObjectMeta, context: ParseContext): IngressFragment {
  checkApiVersion(object, "networking.k8s.io/v1");
  object.warnUnknown(["apiVersion", "kind", "metadata", "spec", "status"]);
  warnAnnotations(meta.annotations, [...PATH_ANNOTATIONS, ...BALANCING_ANNOTATIONS, ...TLS_NAMESPACE_ANNOTATIONS]);
  const useRegex = readUseRegex(meta.annotations);
  const spec = object.get("spec");
  const backends = new Backends(meta.ref, readIngressBalancing(meta.annotations));
  spec.isRequiredMap();
  spec.warnUnknown(["ingressClassName", "defaultBackend", "tls", "rules"]);
  const defaultBackend = spec.get("defaultBackend").isMap() ? backends.read(spec.get("defaultBackend")) : undefined;
  const rules = readRules(spec.get("rules"), useRegex, backends, meta.ref, context);
  if (rules.length === 0 && !spec.get("defaultBackend").present) {
    spec.error("FIELD_REQUIRED", "needs rules or a defaultBackend");
  }
  return {
    kind: "Ingress",
    meta,
    rules,
    ...(defaultBackend && { defaultBackend }),
    upstreams: backends.upstreams(),
    certificates: readTls(spec.get("tls"), rules, meta),
  };
}

/** The services that an Ingress names. One service and port is one upstream, however many paths lead to it. */
class Backends {
  readonly #ref: ObjectRef;
  /** Annotations hold for every upstream of the object. */
  readonly #balancing: Balancing;
  readonly #upstreams = new Map<string, UpstreamDeclaration>();

  constructor(ref: ObjectRef, balancing: Balancing) {
    this.#ref = ref;
    this.#balancing = balancing;
  }

  upstreams(): UpstreamDeclaration[] {
    return [...this.#upstreams.values()];
  }

  /** Reads an IngressBackend: a service with a port by number or name. */
  read(field: Field): Outcome | undefined {
    if (!field.isRequiredMap()) return undefined;
    field.warnUnknown(["service", "resource"]);
    if (field.get("resource").present) {
      const reason = "a resource is no network endpoint that requests could be sent to";
      field.get("resource").error("RESOURCE_BACKEND", `resource backends are not served: ${reason}; use service`);
      return undefined;
    }
    const service = field.get("service");
    if (!service.isRequiredMap()) return undefined;
    service.warnUnknown(["name", "port"]);
    const name = readServiceName(service.get("name"));
    const port = readPortRef(service.get("port"));
    if (name === undefined || port === undefined) return undefined;
    const key = `${refText(this.#ref)}/${name}:${port}`;
    if (!this.#upstreams.has(key)) {
      this.#upstreams.set(key, {
        key,
        display: `${this.#ref.namespace}/${name}:${port}`,
        service: `${this.#ref.namespace}/${name}`,
        port,
        balancing: this.#balancing,
        transport: { tls: false, protocol: "http" },
        path: service.path,
      });
    }
    return { kind: "proxy", upstream: key };
  }
}

function readPortRef(field: Field): PortRef | undefined {
  if (!field.isRequiredMap()) return undefined;
  field.warnUnknown(["number", "name"]);
  const kind = field.exactlyOne(["number", "name"]);
  if (kind === undefined) return undefined;
  return kind === "number" ? readPort(field.get("number")) : readPortName(field.get("name"));
}

function readRules(
  list: Field,
  useRegex: boolean,
  backends: Backends,
  ref: ObjectRef,
  context: ParseContext,
): IngressRule[] {
  return list.items().map((item) => {
    item.isRequiredMap();
    item.warnUnknown(["host", "http"]);
    const hostField = item.get("host");
    const host = hostField.present && hostField.value !== "" ? (readHost(hostField) ?? "") : "";
    const routes: IngressRule["routes"] = [];
    const http = item.get("http");
    http.warnUnknown(["paths"]);
    const paths = http.isMap() ? http.get("paths").requiredItems() : [];
    for (const entry of paths) {
      if (!entry.isRequiredMap()) continue;
      entry.warnUnknown(["path", "pathType", "backend"]);
      const parsed = readIngressPath(entry, useRegex, context.checker);
      const outcome = backends.read(entry.get("backend"));
      if (parsed === undefined || outcome === undefined) continue;
      const route: Route = { path: parsed.rule, label: parsed.label, resource: refText(ref), matches: [], outcome };
      routes.push({ route, path: entry.get("path").path });
    }
    return { host, path: item.path, routes };
  });
}

/** A tls entry without hosts is meant for the hosts of the rules. An annotation may say that the Secrets are elsewhere. */
function readTls(list: Field, rules: readonly IngressRule[], meta: ObjectMeta): CertificateRequest[] {
  const requests: CertificateRequest[] = [];
  const elsewhere = readAnnotation(meta.annotations, TLS_NAMESPACE_ANNOTATIONS, readObjectName);
  const namespace = elsewhere ?? meta.ref.namespace;
  for (const item of list.items()) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["hosts", "secretName"]);
    const hosts = item
      .get("hosts")
      .items()
      .map((host) => readHost(host))
      .filter((host) => host !== undefined);
    const secretField = item.get("secretName");
    const secret = secretField.present && secretField.value !== "" ? readObjectName(secretField) : undefined;
    if (secret === undefined) continue;
    const named = hosts.length > 0 ? hosts : rules.map((rule) => rule.host).filter((host) => host !== "");
    const reference = crossReference(meta.ref, { kind: "Secret", namespace, name: secret });
    for (const host of new Set(named)) {
      requests.push({
        host,
        secret: `${namespace}/${secret}`,
        ...(reference && { reference }),
        path: secretField.path,
      });
    }
  }
  return requests;
}
