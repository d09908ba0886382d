import { readRedirectCode } from "./action.js";
import { warnAnnotations } from "./annotations.js";
import type { Field } from "./field.js";
import type { CertificateRequest, TlsRedirect, VirtualServerFragment } from "./fragments.js";
import { checkApiVersion, type ObjectMeta } from "./metadata.js";
import { readHost, readObjectName, readQualifiedName } from "./names.js";
import type { ObjectRef } from "./object-ref.js";
import type { ParseContext } from "./parse-context.js";
import { crossReference } from "./reference.js";
import { namesPolicies, readRoutes, refuseSnippets, SNIPPET_FIELDS } from "./routes.js";
import { readUpstreams } from "./upstream.js";

const FIELDS = ["ingressClassName", "host", "listener", "tls", "policies", "upstreams", "routes"];

/** VirtualServer k8s.njet.org/v1. Problems go to the list of `object`; the fragment counts only if none is an error. */
export function parseVirtualServer(object: Field, meta: ObjectMeta, context: ParseContext): VirtualServerFragment {
  checkApiVersion(object, "k8s.njet.org/v1");
  object.warnUnknown(["apiVersion", "kind", "metadata", "spec", "status"]);
  warnAnnotations(meta.annotations, []);
  const spec = object.get("spec");
  spec.isRequiredMap();
  spec.warnUnknown([...FIELDS, ...SNIPPET_FIELDS]);
  refuseSnippets(spec);
  const hostField = spec.get("host");
  const host = hostField.required() ? readHost(hostField) : undefined;
  checkListener(spec.get("listener"));
  const withheld = namesPolicies(spec.get("policies"));
  const upstreams = readUpstreams(spec.get("upstreams"), meta.ref);
  const upstreamKeys = new Map([...upstreams].map(([name, upstream]) => [name, upstream.key]));
  const entries = readRoutes(spec.get("routes"), { ref: meta.ref, upstreamKeys, checker: context.checker, withheld });
  const tls = readTls(spec.get("tls"), host ?? "", meta.ref);
  return {
    kind: "VirtualServer",
    meta,
    host: host ?? "",
    entries,
    upstreams: [...upstreams.values()],
    ...tls,
  };
}

function readTls(
  field: Field,
  host: string,
  ref: ObjectRef,
): { certificates: CertificateRequest[]; redirect?: TlsRedirect } {
  field.isMap();
  field.warnUnknown(["secret", "redirect"]);
  const secretField = field.get("secret");
  const target = secretField.present ? readQualifiedName(secretField, ref.namespace) : undefined;
  const certificates: CertificateRequest[] = [];
  if (target !== undefined) {
    const reference = crossReference(ref, { kind: "Secret", ...target });
    const secret = `${target.namespace}/${target.name}`;
    certificates.push({ host, secret, ...(reference && { reference }), path: secretField.path });
  }
  const redirect = readTlsRedirect(field.get("redirect"));
  return { certificates, ...(redirect && { redirect }) };
}

function readTlsRedirect(field: Field): TlsRedirect | undefined {
  if (!field.isMap()) return undefined;
  field.warnUnknown(["enable", "code", "basedOn"]);
  const enabled = field.get("enable").boolean() ?? false;
  const code = readRedirectCode(field.get("code"));
  const basedOn = field.get("basedOn").choice(["scheme", "x-forwarded-proto"]) ?? "scheme";
  return enabled ? { code, basedOn } : undefined;
}

function checkListener(field: Field): void {
  if (!field.isMap()) return;
  field.warnUnknown(["http", "https"]);
  for (const name of ["http", "https"]) {
    if (field.get(name).present) readObjectName(field.get(name));
  }
  field.warnInactive();
}
