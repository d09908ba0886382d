import { describe, expect, it } from "vitest";
import { modelOf, modelOfYaml, parseYaml, stateText } from "./model-support.js";

const ingress = (name: string, host: string | undefined, hasDefault: boolean, created: string) => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ${name}, creationTimestamp: '${created}'}
spec:
  ${hasDefault ? `defaultBackend: {service: {name: ${name}, port: {number: 80}}}` : ""}
  ${host === undefined ? "" : `rules: [{host: '${host}'}]`}
---`;

const T1 = "2024-01-01T00:00:00Z";
const T2 = "2024-02-01T00:00:00Z";
const T3 = "2024-03-01T00:00:00Z";

/** By pattern, the Ingress whose default backend takes what no path matches. */
function unmatched(text: string): Record<string, string | undefined> {
  const { hosts } = modelOf(parseYaml(text)).snapshot();
  return Object.fromEntries([...hosts].map(([pattern, rules]) => [pattern, rules.unmatched?.resource.slice(16)]));
}

describe("what no path of a host matches", () => {
  it("goes to the default backend of the oldest Ingress with rules for the host that has one", () => {
    const text =
      ingress("old", "a.b", false, T1) + ingress("middle", "a.b", true, T2) + ingress("young", "a.b", true, T3);
    expect(unmatched(text)["a.b"]).toBe("middle");
  });

  it("is left to the last resort if no Ingress of the host has a default backend", () => {
    const text = ingress("plain", "a.b", false, T1) + ingress("other", "c.d", true, T2);
    expect(unmatched(text)["a.b"]).toBeUndefined();
  });
});

describe("requests for unknown hosts", () => {
  it("go to the oldest Ingress that has nothing but a default backend", () => {
    const text =
      ingress("late", undefined, true, T2) + ingress("early", undefined, true, T1) + ingress("x", "a.b", true, T3);
    expect(unmatched(text)).toEqual({ "(default)": "early", "a.b": "x" });
    const model = modelOfYaml(text);
    expect(stateText(model, "Ingress", "late")).toContain("Warning Rejected DEFAULT_TAKEN@spec.defaultBackend");
  });

  it("go to the oldest default backend of an Ingress with rules if there is no such Ingress", () => {
    const text = ingress("late", "a.b", true, T2) + ingress("early", "c.d", true, T1);
    expect(unmatched(text)).toEqual({ "": "early", "a.b": "late", "c.d": "early" });
  });

  it("go to the default backend of the rules without a host first", () => {
    const text = ingress("hostless", "", true, T3) + ingress("early", "c.d", true, T1);
    expect(unmatched(text)[""]).toBe("hostless");
  });

  it("follow when the Ingress that took them comes or goes", () => {
    const [resort, named] = parseYaml(ingress("resort", undefined, true, T1) + ingress("named", "a.b", true, T2));
    const model = modelOf([resort, named]);
    const removed = model.update([{ kind: "Ingress", namespace: "default", name: "resort", object: undefined }]);
    expect(removed.hosts.get("")?.unmatched?.resource).toBe("Ingress/default/named");
    expect(removed.hosts.has("(default)") && removed.hosts.get("(default)")).toBeUndefined();
    const added = model.update([{ kind: "Ingress", namespace: "default", name: "resort", object: resort }]);
    expect(added.hosts.get("(default)")?.unmatched?.resource).toBe("Ingress/default/resort");
    expect(added.hosts.has("") && added.hosts.get("")).toBeUndefined();
  });
});

it("a host that is called default is a host like any other", () => {
  const text = ingress("resort", undefined, true, T1) + ingress("named", "default", true, T2);
  expect(unmatched(text)).toEqual({ "(default)": "resort", default: "named" });
});
