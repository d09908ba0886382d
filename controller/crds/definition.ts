import { Descriptions } from "./descriptions.js";
import { readKind } from "./read-kind.js";
import { type Schema, schemaOf } from "./schema.js";
import { statusSchema } from "./status-schema.js";

const GROUP = "k8s.njet.org";

/** A kind that the group defines. */
export interface CustomKind {
  kind: "VirtualServer" | "VirtualServerRoute";
  shortName: string;
  description: string;
  spec: string;
}

/** The kinds that act. */
export const CUSTOM_KINDS: readonly CustomKind[] = [
  {
    kind: "VirtualServer",
    shortName: "vs",
    description:
      "VirtualServer says what requests for one host do: by path, under conditions, in shares, or by delegation.",
    spec: "What requests for the host do.",
  },
  {
    kind: "VirtualServerRoute",
    shortName: "vsr",
    description: "VirtualServerRoute says what requests do for a path that a VirtualServer delegates to it.",
    spec: "What requests for the delegated path do.",
  },
];

const COLUMNS = [
  { name: "State", type: "string", jsonPath: ".status.state", description: "Valid, Warning or Invalid." },
  { name: "Host", type: "string", jsonPath: ".spec.host", description: "Host that is answered for." },
  { name: "IP", type: "string", jsonPath: ".status.externalEndpoints[*].ip", description: "Where clients reach it." },
  { name: "Ports", type: "string", jsonPath: ".status.externalEndpoints[*].ports", description: "Ports for clients." },
  {
    name: "Hostname",
    type: "string",
    priority: 1,
    jsonPath: ".status.externalEndpoints[*].hostname",
    description: "Where clients reach it, by name.",
  },
  {
    name: "Reason",
    type: "string",
    priority: 1,
    jsonPath: ".status.reason",
    description: "Why the state is what it is.",
  },
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since it was created." },
];

/** The definitions of all kinds (apiextensions.k8s.io/v1, CustomResourceDefinition). */
export function customResourceDefinitions() {
  const descriptions = new Descriptions();
  const definitions = CUSTOM_KINDS.map((kind) => definitionOf(kind, descriptions));
  const unused = descriptions.unused();
  if (unused.length > 0) throw new Error(`descriptions of fields that nobody reads: ${unused.join(", ")}`);
  return definitions;
}

function definitionOf({ kind, shortName, description, spec }: CustomKind, descriptions: Descriptions) {
  const singular = kind.toLowerCase();
  const plural = `${singular}s`;
  const schema: Schema = {
    description,
    type: "object",
    required: ["spec"],
    properties: {
      apiVersion: { description: `${GROUP}/v1`, type: "string" },
      kind: { description: kind, type: "string" },
      metadata: { type: "object" },
      spec: schemaOf(readKind(kind), (record) => (record.path === "spec" ? spec : descriptions.describe(record))),
      status: statusSchema(kind === "VirtualServerRoute"),
    },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}`, labels: { app: "njet-ingress" } },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular, shortNames: [shortName], categories: ["njet"] },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: COLUMNS,
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  };
}
