import type { Schema } from "./schema.js";

const STATES = ["Valid", "Warning", "Invalid"];
const MAX_MESSAGE = 32_768;

/** Kubernetes API, metav1.Condition. */
const CONDITION: Schema = {
  type: "object",
  required: ["lastTransitionTime", "message", "reason", "status", "type"],
  properties: {
    lastTransitionTime: { description: "When the status changed last.", type: "string", format: "date-time" },
    message: { description: "What is the case, for people.", type: "string", maxLength: MAX_MESSAGE },
    observedGeneration: {
      description: "Generation of the object that the condition is about.",
      type: "integer",
      format: "int64",
      minimum: 0,
    },
    reason: {
      description: "What is the case, in one word.",
      type: "string",
      minLength: 1,
      maxLength: 1024,
      pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    },
    status: { description: "Whether the condition holds.", type: "string", enum: ["True", "False", "Unknown"] },
    type: {
      description: "What the condition is about. Ready: a part of the object at least is served.",
      type: "string",
      maxLength: 316,
      pattern:
        "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    },
  },
};

const ENDPOINT: Schema = {
  type: "object",
  properties: {
    hostname: { description: "Host name, where there is no address.", type: "string" },
    ip: { description: "Address.", type: "string" },
    ports: { description: "Ports, as a list in brackets.", type: "string" },
  },
};

/** `status`, as controller/kubernetes/status-content.ts writes it. */
export function statusSchema(isRoute: boolean): Schema {
  const referencedBy: Schema = {
    description: "The VirtualServer that delegates to this object, as namespace/name; empty without one.",
    type: "string",
  };
  return {
    description: "What became of the object. Written by the controller.",
    type: "object",
    properties: {
      conditions: {
        description: "Conditions in the form that Kubernetes has for them.",
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        items: CONDITION,
      },
      externalEndpoints: {
        description: "Where clients reach what the object serves.",
        type: "array",
        "x-kubernetes-list-type": "atomic",
        items: ENDPOINT,
      },
      message: {
        description: "What is the case: every problem with its field.",
        type: "string",
        maxLength: MAX_MESSAGE,
      },
      observedGeneration: {
        description: "Generation of the object that the status is about.",
        type: "integer",
        format: "int64",
        minimum: 0,
      },
      reason: { description: "Why the state is what it is, in one word.", type: "string" },
      ...(isRoute && { referencedBy }),
      state: {
        description: "Valid: served as it is. Warning: served, in part at least, with problems. Invalid: not served.",
        type: "string",
        enum: STATES,
      },
    },
  };
}
