import type { Field } from "./field.js";
import type { ServiceFragment, ServicePort } from "./fragments.js";
import { readPort } from "./names.js";

/** ServiceSpec of the Kubernetes API, with fields that were taken out of it again. */
const SPEC_FIELDS = [
  "ports",
  "selector",
  "clusterIP",
  "clusterIPs",
  "type",
  "externalIPs",
  "sessionAffinity",
  "loadBalancerIP",
  "loadBalancerSourceRanges",
  "externalName",
  "externalTrafficPolicy",
  "healthCheckNodePort",
  "publishNotReadyAddresses",
  "sessionAffinityConfig",
  "ipFamilies",
  "ipFamilyPolicy",
  "ipFamily",
  "allocateLoadBalancerNodePorts",
  "loadBalancerClass",
  "internalTrafficPolicy",
  "trafficDistribution",
  "topologyKeys",
];

/** Service v1: what is needed to find its endpoints. Headless services are read like any other. */
export function parseService(object: Field): ServiceFragment {
  object.warnUnknown(["apiVersion", "kind", "metadata", "spec", "status"]);
  const spec = object.get("spec");
  spec.isRequiredMap();
  spec.warnUnknown(SPEC_FIELDS);
  const ports: ServicePort[] = [];
  for (const item of spec.get("ports").items()) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["name", "protocol", "appProtocol", "port", "targetPort", "nodePort"]);
    const port = item.get("port").required() ? readPort(item.get("port")) : undefined;
    const name = item.get("name").text() ?? "";
    const protocol = item.get("protocol").text() ?? "TCP";
    if (port !== undefined) ports.push({ name, port, protocol });
  }
  return {
    external: spec.get("type").text() === "ExternalName",
    publishNotReady: spec.get("publishNotReadyAddresses").boolean() ?? false,
    ports,
  };
}
