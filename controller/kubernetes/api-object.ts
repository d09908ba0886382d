import type { ResourceType } from "./resource-type.js";

/** An object of the API server: always with kind, apiVersion, name and resourceVersion. */
export interface ApiObject {
  kind: string;
  apiVersion: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion: string;
    generation?: number;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

/** kubectl keeps the whole object here a second time, values of Secrets included. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Gives an item of a LIST and an object of a WATCH the same shape (items of a LIST carry no kind), and drops what nobody
 * here reads but what may be larger than the rest. Undefined for what is no object of the API.
 */
export function normalise(value: unknown, type: ResourceType): ApiObject | undefined {
  if (!isRecord(value) || !isRecord(value.metadata)) return undefined;
  const { managedFields: _, annotations, ...metadata } = value.metadata;
  if (typeof metadata.name !== "string" || typeof metadata.resourceVersion !== "string") return undefined;
  if (isRecord(annotations)) {
    const { [LAST_APPLIED]: _, ...kept } = annotations;
    metadata.annotations = kept;
  }
  return { ...value, kind: type.kind, apiVersion: type.apiVersion, metadata: metadata as ApiObject["metadata"] };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
