import { isIP, SocketAddress } from "node:net";
import type { Field } from "./field.js";
import type { Endpoint, EndpointSliceFragment } from "./fragments.js";
import type { ObjectMeta } from "./metadata.js";
import { readPort } from "./names.js";
import { quote } from "./problem.js";

const SERVICE_LABEL = "kubernetes.io/service-name";
const FIELDS = ["apiVersion", "kind", "metadata", "addressType", "endpoints", "ports"];
const ENDPOINT_FIELDS = [
  "addresses",
  "conditions",
  "hostname",
  "targetRef",
  "deprecatedTopology",
  "nodeName",
  "zone",
  "hints",
];

/** EndpointSlice discovery.k8s.io/v1. It belongs to the service of its label, whatever its own name is. */
export function parseEndpointSlice(object: Field, meta: ObjectMeta): EndpointSliceFragment {
  object.warnUnknown(FIELDS);
  const service = object.get("metadata").get("labels").get(SERVICE_LABEL).text();
  const fragment: EndpointSliceFragment = { ports: [], endpoints: [] };
  if (service !== undefined && service !== "") fragment.service = `${meta.ref.namespace}/${service}`;
  for (const item of object.get("ports").items()) {
    if (!item.isRequiredMap()) continue;
    item.warnUnknown(["name", "protocol", "port", "appProtocol"]);
    const name = item.get("name").text() ?? "";
    const port = item.get("port").present ? readPort(item.get("port")) : undefined;
    if (port !== undefined) fragment.ports.push({ name, port });
  }
  for (const item of object.get("endpoints").items()) {
    const endpoint = item.isRequiredMap() ? readEndpoint(item) : undefined;
    if (endpoint !== undefined) fragment.endpoints.push(endpoint);
  }
  return fragment;
}

/**
 * Only the first address counts: the API calls further ones fungible. An unset `ready` means ready, an unset `serving`
 * the same as ready, an unset `terminating` false (Kubernetes API, EndpointConditions).
 */
function readEndpoint(item: Field): Endpoint | undefined {
  item.warnUnknown(ENDPOINT_FIELDS);
  const [first] = item.get("addresses").requiredItems();
  const text = first?.text();
  if (text === undefined) return undefined;
  const address = canonicalAddress(text);
  if (address === undefined) {
    first.warning("ENDPOINT_IGNORED", `${quote(text)} is no IP address, so it is no peer`);
    return undefined;
  }
  const conditions = item.get("conditions");
  conditions.isMap();
  conditions.warnUnknown(["ready", "serving", "terminating"]);
  const ready = conditions.get("ready").boolean() ?? true;
  const serving = conditions.get("serving").boolean() ?? ready;
  return { address, ready, serving, terminating: conditions.get("terminating").boolean() ?? false };
}

/** One spelling for each address, so that the same peer is recognised in two slices. Zones are no part of a peer. */
function canonicalAddress(text: string): string | undefined {
  const version = isIP(text);
  if (version === 0 || text.includes("%")) return undefined;
  return version === 4 ? text : new SocketAddress({ address: text, family: "ipv6" }).address;
}
