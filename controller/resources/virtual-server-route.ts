import { warnAnnotations } from "./annotations.js";
import type { Field } from "./field.js";
import type { VirtualServerRouteFragment } from "./fragments.js";
import { checkApiVersion, type ObjectMeta } from "./metadata.js";
import { readHost } from "./names.js";
import type { ParseContext } from "./parse-context.js";
import { readSubroutes, refuseSnippets, SNIPPET_FIELDS } from "./routes.js";
import { readUpstreams } from "./upstream.js";

/** VirtualServerRoute k8s.njet.org/v1: routes that a VirtualServer delegates to. Its upstreams are services of its own namespace, unless they name another. */
export function parseVirtualServerRoute(
  object: Field,
  meta: ObjectMeta,
  context: ParseContext,
): VirtualServerRouteFragment {
  checkApiVersion(object, "k8s.njet.org/v1");
  object.warnUnknown(["apiVersion", "kind", "metadata", "spec", "status"]);
  warnAnnotations(meta.annotations, []);
  const spec = object.get("spec");
  spec.isRequiredMap();
  spec.warnUnknown(["ingressClassName", "host", "upstreams", "subroutes", ...SNIPPET_FIELDS]);
  refuseSnippets(spec);
  const hostField = spec.get("host");
  const host = hostField.required() ? readHost(hostField) : undefined;
  const upstreams = readUpstreams(spec.get("upstreams"), meta.ref);
  const upstreamKeys = new Map([...upstreams].map(([name, upstream]) => [name, upstream.key]));
  const routes = { ref: meta.ref, upstreamKeys, checker: context.checker, withheld: false };
  const subroutes = readSubroutes(spec.get("subroutes"), routes);
  return {
    kind: "VirtualServerRoute",
    meta,
    host: host ?? "",
    subroutes,
    upstreams: [...upstreams.values()],
    certificates: [],
  };
}
