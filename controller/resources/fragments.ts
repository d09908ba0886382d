/** What is left of an object once it is parsed: the pieces that the routing model is put together from. */
import type {
  BalanceMethod,
  ErrorPage,
  Outcome,
  PathRule,
  PeerSetLimits,
  Route,
} from "../../core-wasm/binding/source.js";
import type { Upstream, UpstreamTransport } from "../model/types.js";
import type { ObjectMeta } from "./metadata.js";
import type { Reference } from "./reference.js";

/** The port of a service, as a backend names it. */
export type PortRef = number | string;

/** How the requests of an upstream are spread over its peers, with every default filled in. */
export interface Balancing extends Pick<Upstream, "healthCheck" | "sessionCookie" | "queue"> {
  method: BalanceMethod;
  limits: PeerSetLimits;
}

/** An upstream that an object declares; its peers come from the endpoints of the service. */
export interface UpstreamDeclaration {
  /** `Kind/namespace/object/name`. */
  key: string;
  /** `namespace/service:port`. */
  display: string;
  /** `namespace/name` of the service. */
  service: string;
  /** Where the service is of another namespace. */
  reference?: Reference;
  port: PortRef;
  balancing: Balancing;
  transport: UpstreamTransport;
  /** Field of the object that names the service, for problems. */
  path: string;
}

/** A certificate that an object wants for a host: `namespace/name` of a Secret, and the field that names it. */
export interface CertificateRequest {
  host: string;
  secret: string;
  /** Where the Secret is of another namespace. */
  reference?: Reference;
  path: string;
}

/** A rule of an Ingress. `host` is empty for a rule without one. */
export interface IngressRule {
  host: string;
  /** Field of the rule, for problems. */
  path: string;
  routes: { route: Route; path: string }[];
}

export interface IngressFragment {
  kind: "Ingress";
  meta: ObjectMeta;
  rules: IngressRule[];
  defaultBackend?: Outcome;
  upstreams: UpstreamDeclaration[];
  certificates: CertificateRequest[];
}

/**
 * A route of a VirtualServer: one of its own, or a path that is delegated to a VirtualServerRoute (`to`, with a `reference`
 * where it is of another namespace). What is `withheld` answers 500, since policies that do not act guard it. Error pages of
 * a delegated path are for routes that have none.
 */
export type VirtualServerEntry =
  | { kind: "own"; route: Route; path: string }
  | {
      kind: "delegated";
      rule: PathRule;
      label: string;
      to: string;
      reference?: Reference;
      path: string;
      errorPages: ErrorPage[];
      withheld: boolean;
    };

export interface VirtualServerFragment {
  kind: "VirtualServer";
  meta: ObjectMeta;
  host: string;
  redirect?: TlsRedirect;
  entries: VirtualServerEntry[];
  upstreams: UpstreamDeclaration[];
  certificates: CertificateRequest[];
}

export interface VirtualServerRouteFragment {
  kind: "VirtualServerRoute";
  meta: ObjectMeta;
  host: string;
  subroutes: { route: Route; path: string }[];
  upstreams: UpstreamDeclaration[];
  certificates: CertificateRequest[];
}

/** Sends plain HTTP to https. */
export interface TlsRedirect {
  code: number;
  basedOn: "scheme" | "x-forwarded-proto";
}

/** Objects that bring routes. */
export type RoutingFragment = IngressFragment | VirtualServerFragment | VirtualServerRouteFragment;

export interface IngressClassFragment {
  name: string;
  controller: string;
  isDefault: boolean;
}

export interface ServicePort {
  /** Empty if unnamed. */
  name: string;
  port: number;
  protocol: string;
}

export interface ServiceFragment {
  /** A service of type ExternalName has no endpoints. */
  external: boolean;
  publishNotReady: boolean;
  ports: ServicePort[];
}

export interface Endpoint {
  /** Canonical IP literal, IPv6 without brackets. */
  address: string;
  ready: boolean;
  serving: boolean;
  terminating: boolean;
}

export interface EndpointSliceFragment {
  /** `namespace/name` of the service it belongs to; undefined without the label. */
  service?: string;
  ports: { name: string; port: number }[];
  endpoints: Endpoint[];
}

/** What the objects of a namespace may be referred to by: each `from` may refer to each `to`. */
export interface ReferenceGrantFragment {
  /** Namespace of the grant, and of what is referred to. */
  namespace: string;
  from: { group: string; kind: string; namespace: string }[];
  /** Without a name: every object of the kind. */
  to: { group: string; kind: string; name?: string }[];
}

/** A usable certificate with its key. */
export interface SecretFragment {
  /** PEM, leaf first. */
  chain: string;
  /** PEM. Secret. */
  key: string;
  fingerprint: string;
  /** Whether the leaf is made for a host; a wildcard is asked for as `*.example.com`. */
  covers(host: string): boolean;
}
