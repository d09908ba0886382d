import { beforeAll, describe, expect, it } from "vitest";
import { customResourceDefinitions } from "../../controller/crds/definition.js";
import { type CustomStatusInput, customStatus } from "../../controller/kubernetes/status-content.js";
import { installed, noCluster, useCluster } from "../kubernetes/cluster-support.js";
import { EVERY_FIELD } from "./crds-support.js";

const current = useCluster();
const ADDRESSES = [{ ip: "192.0.2.10" }, { ip: "2001:db8::10" }, { hostname: "edge.example.com" }];
const problem = { path: "spec.routes[0].path", code: "REGEX_INVALID", severity: "error" } as const;

/** What becomes of objects, in the order in which it is told of one. */
const STATES: Pick<CustomStatusInput["state"], "state" | "reason" | "problems">[] = [
  { state: "Valid", reason: "AddedOrUpdated", problems: [] },
  { state: "Warning", reason: "AddedOrUpdatedWithWarning", problems: [{ ...problem, message: "x".repeat(2000) }] },
  { state: "Warning", reason: "Rejected", problems: [{ ...problem, message: "another object has the host" }] },
  {
    state: "Warning",
    reason: "NoVirtualServerFound",
    problems: [{ ...problem, path: "", message: "nobody delegates" }],
  },
  { state: "Warning", reason: "AddedOrUpdatedWithError", problems: [{ ...problem, message: "the proxy refused it" }] },
  { state: "Invalid", reason: "Rejected", problems: Array(101).fill({ ...problem, message: "\\u00e9 is wrong" }) },
];

beforeAll(async () => {
  if (noCluster) return;
  await current().admin.applyAll(customResourceDefinitions());
  await installed(current());
});

describe.skipIf(noCluster)("the status that the controller writes", () => {
  it.each(EVERY_FIELD)("of a $kind is kept by the API server, each field of it", async (object) => {
    const { admin } = current();
    await admin.apply(object);
    const ref = { kind: object.kind as "VirtualServer", namespace: "default", name: object.metadata.name };
    let before: unknown;
    for (const [index, state] of STATES.entries()) {
      const status = customStatus({
        state: { ref, ...state },
        generation: index + 1,
        addresses: ADDRESSES,
        referencedBy: "default/whole",
        before,
        wallClock: 1_700_000_000_000 + index * 1000,
      });
      // Strict: a field that the schema does not know is an error.
      await admin.patch(object, { status }, "/status?fieldValidation=Strict");
      before = (await admin.get(object))?.status;
      expect(before).toEqual(status);
    }
  });

  it.each(EVERY_FIELD)("of a $kind is nothing that its owner can write", async (object) => {
    const { admin } = current();
    const told = (await admin.get(object))?.status;
    const { spec, status } = await admin.patch(object, {
      spec: { ingressClassName: "mine" },
      status: { state: "Valid" },
    });
    expect(spec).toMatchObject({ ingressClassName: "mine" });
    expect(status).toEqual(told);
  });
});
