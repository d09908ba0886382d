import { Option } from "commander";
import { CROSS_NAMESPACE, type CrossNamespace, DEFAULT_CROSS_NAMESPACE } from "../model/reference-index.js";
import type { ModelOptions } from "../model/routing-model.js";

/** Options of every command that say which objects are served, and what they may refer to. */
export interface ModelChoices {
  ingressClass?: string;
  crossNamespaceRoutes?: CrossNamespace;
  crossNamespaceServices?: CrossNamespace;
}

/** The options themselves, for `--help` and the parser. */
export function modelOptions(): Option[] {
  const crossNamespace = (what: "routes" | "services", text: string) =>
    new Option(`--cross-namespace-${what} <when>`, `whether ${text} of another namespace are used`)
      .choices(CROSS_NAMESPACE)
      .default(DEFAULT_CROSS_NAMESPACE[what]);
  return [
    new Option("--ingress-class <name>", "class of the objects to serve").default("njet"),
    crossNamespace("routes", "VirtualServerRoutes"),
    crossNamespace("services", "services"),
  ];
}

/** What they mean to the model. */
export function modelChoices(options: ModelChoices): Pick<ModelOptions, "ingressClass" | "crossNamespace"> {
  const { ingressClass, crossNamespaceRoutes: routes, crossNamespaceServices: services } = options;
  return {
    ...(ingressClass === undefined ? {} : { ingressClass }),
    crossNamespace: { ...(routes && { routes }), ...(services && { services }) },
  };
}
