import type { Field } from "./field.js";
import type { ServiceFragment, ServicePort } from "./fragments.js";
import { readPort } from "./names.js";

/** Service v1: what is needed to find its endpoints. Headless services are read like any other. */
export function parseService(object: Field): ServiceFragment {
  const spec = object.get("spec");
  spec.isRequiredMap();
  const ports: ServicePort[] = [];
  for (const item of spec.get("ports").items()) {
    if (!item.isRequiredMap()) continue;
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
