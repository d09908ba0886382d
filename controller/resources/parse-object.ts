import { CLASS_ANNOTATION } from "./annotations.js";
import { parseEndpointSlice } from "./endpoint-slice.js";
import { Field } from "./field.js";
import type {
  EndpointSliceFragment,
  IngressClassFragment,
  ReferenceGrantFragment,
  RoutingFragment,
  SecretFragment,
  ServiceFragment,
} from "./fragments.js";
import { parseIngress } from "./ingress.js";
import { parseIngressClass } from "./ingress-class.js";
import { type ObjectMeta, readMetadata } from "./metadata.js";
import type { ObjectRef } from "./object-ref.js";
import type { ParseContext } from "./parse-context.js";
import { type Problem, ProblemList } from "./problem.js";
import { parseReferenceGrant } from "./reference-grant.js";
import { parseTlsSecret, TLS_SECRET_TYPE } from "./secret.js";
import { parseService } from "./service.js";
import { parseVirtualServer } from "./virtual-server.js";
import { parseVirtualServerRoute } from "./virtual-server-route.js";

/**
 * A parsed object. A missing `fragment` means that the object is Invalid or, for a Secret that holds no certificate and
 * for kinds that are not served, that there is nothing to take from it.
 */
export type ParsedObject = { meta: ObjectMeta; problems: Problem[] } & (
  | { kind: "routing"; className: string | undefined; fragment?: RoutingFragment }
  | { kind: "class"; fragment?: IngressClassFragment }
  | { kind: "service"; fragment?: ServiceFragment }
  | { kind: "slice"; fragment?: EndpointSliceFragment }
  | { kind: "secret"; isTls: boolean; fragment?: SecretFragment }
  | { kind: "grant"; fragment?: ReferenceGrantFragment }
  | { kind: "unserved" }
);

/**
 * Parses any JSON value as the object `ref`. Never throws, whatever the value: every problem is collected, and an
 * object with an error has no fragment, so that half an object is never served.
 */
export function parseObject(ref: ObjectRef, value: unknown, context: ParseContext): ParsedObject {
  const problems = new ProblemList();
  const object = new Field(value, "", problems);
  object.isRequiredMap();
  const meta = readMetadata(object, ref);
  const parsed = parseKind(object, meta, context);
  if (problems.hasError && "fragment" in parsed) parsed.fragment = undefined;
  return { ...parsed, meta, problems: problems.list() };
}

export type Parsed = ParsedObject extends infer P ? (P extends unknown ? Omit<P, "meta" | "problems"> : never) : never;

/** What the readers of the kind `meta.ref.kind` make of `object`. */
export function parseKind(object: Field, meta: ObjectMeta, context: ParseContext): Parsed {
  switch (meta.ref.kind) {
    case "Ingress":
      return {
        kind: "routing",
        className: readIngressClass(object, meta),
        fragment: parseIngress(object, meta, context),
      };
    case "VirtualServer":
      return { kind: "routing", className: readClass(object), fragment: parseVirtualServer(object, meta, context) };
    case "VirtualServerRoute":
      return {
        kind: "routing",
        className: readClass(object),
        fragment: parseVirtualServerRoute(object, meta, context),
      };
    case "IngressClass":
      return { kind: "class", fragment: parseIngressClass(object, meta) };
    case "Service":
      return { kind: "service", fragment: parseService(object) };
    case "EndpointSlice":
      return { kind: "slice", fragment: parseEndpointSlice(object, meta) };
    case "Secret": {
      const isTls = object.get("type").text() === TLS_SECRET_TYPE;
      return { kind: "secret", isTls, fragment: isTls ? parseTlsSecret(object) : undefined };
    }
    case "ReferenceGrant":
      return { kind: "grant", fragment: parseReferenceGrant(object, meta) };
    case "TransportServer":
    case "GlobalConfiguration":
    case "Policy":
      object.warning("KIND_NOT_SERVED", `a ${meta.ref.kind} does not act in this version`);
      return { kind: "unserved" };
  }
}

function readClass(object: Field): string | undefined {
  return object.get("spec").get("ingressClassName").text() || undefined;
}

/** The old annotation goes before the field (Kubernetes API, IngressSpec.ingressClassName). */
function readIngressClass(object: Field, meta: ObjectMeta): string | undefined {
  const named = readClass(object);
  const annotation = meta.annotations.get(CLASS_ANNOTATION);
  const legacy = annotation?.text() || undefined;
  if (annotation !== undefined && legacy !== undefined && named !== undefined && legacy !== named) {
    annotation.warning("CLASS_CONFLICT", "names another class than spec.ingressClassName; this annotation counts");
  }
  return legacy ?? named;
}
