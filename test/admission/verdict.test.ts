import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readReview, reviewOf } from "../../controller/admission/admission-review.js";
import { judge, type Verdict } from "../../controller/admission/verdict.js";
import { modelOf, modelOfYaml, parseYaml, type SourceObject } from "../model/model-support.js";
import { randomChange } from "../model/random-changes.js";
import { patternChecker } from "../support/core.js";
import { ingress, NOW, parseOne, reviewFor, server } from "./admission-support.js";

/** With a clock that stands still. */
const OPTIONS = { follows: () => true, checker: patternChecker(), now: NOW, clock: () => 0 };
const OLD = "2024-01-01T00:00:00Z";
const NEW = "2024-02-01T00:00:00Z";

/** The verdict on an object among the objects of a YAML text. */
function verdictOn(objects: string, text: string, more: Record<string, unknown> = {}, follows = true): Verdict {
  const request = readReview(reviewFor(parseOne(text), more));
  return judge(request, { model: modelOfYaml(objects), ...OPTIONS, follows: () => follows });
}

/** The verdict on a change of an object that is there. */
function verdictOnUpdate(before: string, after: string, others = ""): Verdict {
  const objects = others === "" ? before : `${before}\n---\n${others}`;
  return verdictOn(objects, after, { operation: "UPDATE", oldObject: parseOne(before) });
}

const codes = ({ refusal }: Verdict) => refusal?.causes.map(({ reason }) => reason);

const GOOD = server("shop", "shop.example.com", OLD);
const BROKEN = server("shop", "shop.example.com", OLD, "{path: no-slash, action: {pass: nowhere}}");

describe("an object by itself", () => {
  it("is allowed where nothing is wrong with it", () => {
    expect(verdictOn("", GOOD)).toEqual({ answer: "allowed", warnings: [] });
  });

  it("is refused for its errors, with object, field, code and remedy of each", () => {
    const { answer, refusal } = verdictOn("", BROKEN);
    expect([answer, refusal?.code, refusal?.reason]).toEqual(["refused", 422, "Invalid"]);
    expect(refusal?.message).toMatch(/^VirtualServer\/default\/shop: spec\.routes\[0\]\.path: /);
    expect(refusal?.message).toContain("(UPSTREAM_UNKNOWN: Add it to upstreams of the same object");
    expect(refusal?.causes.map(({ reason, field }) => `${reason} ${field}`)).toEqual([
      "PATH_INVALID spec.routes[0].path",
      "UPSTREAM_UNKNOWN spec.routes[0].action.pass",
    ]);
  });

  it("is allowed with a warning for what may come later", () => {
    const { answer, warnings } = verdictOn("", ingress("shop", "shop.example.com", ["/"]));
    expect(answer).toBe("warned");
    expect(warnings).toEqual([
      "spec.rules[0].http.paths[0].backend.service: the service default/s does not exist; requests are answered 503 (SERVICE_MISSING)",
    ]);
  });

  it("is refused where it is no object at all", () => {
    const request = readReview(reviewFor(parseOne(GOOD), { object: 7 }));
    expect(judge(request, { model: modelOfYaml(""), ...OPTIONS }).answer).toBe("refused");
  });

  it("gets warnings that are few, short and printable, and a refusal that is bounded, whatever it holds", () => {
    const routes = Array.from(
      { length: 200 },
      (_, index) => `{path: "x\\u001b[31m\\u202e${index}${"y".repeat(300)}"}`,
    ).join();
    const unknown = Array.from({ length: 200 }, (_, index) => `"${index}\\u0007${"z".repeat(300)}": 1`).join();
    const text = `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: shop}, spec: {
      host: shop.example.com, ${unknown}, routes: [${routes}]}}`;
    const { warnings, refusal } = verdictOn("", text);
    expect(warnings.length).toBe(16);
    expect(refusal?.causes.length).toBeLessThanOrEqual(20);
    expect(Buffer.byteLength(refusal?.message ?? "")).toBeLessThan(16_384);
    for (const line of [...warnings, refusal?.message]) expect(line).toMatch(/^[\x20-\x7e]+$/);
    for (const warning of warnings) expect(warning.length).toBeLessThanOrEqual(256);
  });
});

describe("what another object has", () => {
  it("is refused: a host, with its owner named", () => {
    const { refusal } = verdictOn(server("first", "shop.example.com", OLD), server("second", "shop.example.com"));
    expect([refusal?.code, refusal?.reason]).toEqual([403, "Forbidden"]);
    expect(refusal?.causes).toEqual([
      {
        reason: "HOST_TAKEN",
        field: "spec.host",
        message:
          'VirtualServer/default/first is older and has the host "shop.example.com" (HOST_TAKEN: Use another host, or remove one of the objects.)',
      },
    ]);
  });

  it("is refused: host, path and pathType of an older Ingress; other paths of the host are free", () => {
    const first = ingress("first", "shop.example.com", ["/a"], OLD);
    expect(codes(verdictOn(first, ingress("second", "shop.example.com", ["/a"], NEW)))).toEqual(["PATH_TAKEN"]);
    expect(verdictOn(first, ingress("second", "shop.example.com", ["/b"], NEW)).answer).toBe("warned");
  });

  it("is refused also to an object that brings no time of its making: it is the newest", () => {
    expect(codes(verdictOn(GOOD, server("second", "shop.example.com")))).toEqual(["HOST_TAKEN"]);
  });

  it("is refused to an older object that would take it away", () => {
    const before = server("first", "other.example.com", OLD);
    const after = server("first", "shop.example.com", OLD);
    const { refusal } = verdictOnUpdate(before, after, server("second", "shop.example.com", NEW));
    expect(refusal?.code).toBe(403);
    expect(refusal?.message).toContain('VirtualServer/default/second has the host "shop.example.com"');
    expect(refusal?.causes.map(({ reason }) => reason)).toEqual(["HOST_IN_USE"]);
  });

  it("is a warning where the object had lost it before: the rest of it can be repaired", () => {
    const first = ingress("first", "shop.example.com", ["/a", "/b"], OLD);
    const before = ingress("second", "shop.example.com", ["/a", "/c"], NEW);
    const changed = verdictOnUpdate(before, ingress("second", "shop.example.com", ["/d", "/a"], NEW), first);
    expect(changed.answer).toBe("warned");
    expect(changed.warnings.join()).toContain("PATH_TAKEN");
    const worse = verdictOnUpdate(before, ingress("second", "shop.example.com", ["/a", "/b"], NEW), first);
    expect(worse.refusal?.causes.map(({ field }) => field)).toEqual(["spec.rules[0].http.paths[1].path"]);
    expect(worse.warnings.join()).toContain("PATH_TAKEN");
  });
});

describe("allowed without a look", () => {
  const passed = { answer: "passed", warnings: [] };

  it("is a deletion", () => {
    expect(verdictOn("", BROKEN, { operation: "DELETE", object: null, oldObject: parseOne(BROKEN) })).toEqual(passed);
  });

  it("is an object of a class that is not served here", () => {
    expect(verdictOn("", BROKEN.replace("spec: {", "spec: {ingressClassName: other, "))).toEqual(passed);
  });

  it("is an object of a namespace that is not followed", () => {
    expect(verdictOn("", BROKEN, {}, false)).toEqual(passed);
  });

  it("is a kind that brings no routes, such as a Secret", () => {
    const secret = "{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: s}, data: {tls.crt: 7}}";
    expect(verdictOn("", secret)).toEqual(passed);
    expect(verdictOn("", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: 'system:x'}}")).toEqual(passed);
  });

  it("is a subresource, such as status", () => {
    expect(verdictOn("", BROKEN, { subResource: "status", operation: "UPDATE" })).toEqual(passed);
  });

  it("is a change of finalizers, labels and foreign annotations of an Invalid object", () => {
    const metadata = "finalizers: [a.example.com/b], labels: {a: b}, annotations: {example.com/a: b}, name: shop";
    expect(verdictOnUpdate(BROKEN, BROKEN.replace("name: shop", metadata))).toEqual(passed);
  });

  it("is an object that is being deleted", () => {
    const leaving = BROKEN.replace("name: shop", `name: shop, deletionTimestamp: '${NEW}'`);
    expect(verdictOnUpdate(GOOD, leaving)).toEqual(passed);
  });
});

describe("patterns that take their time", () => {
  const routes = ["~ ^/a$", "~ ^/b(", "~ ^/(c)$"]
    .map((path) => `{path: "${path}", action: {return: {body: x}}}`)
    .join();
  const request = readReview(reviewFor(parseOne(server("shop", "shop.example.com", OLD, routes))));
  /** The verdict where each look at the clock finds `step` milliseconds more. */
  const within = (step: number) => {
    let now = 0;
    const clock = () => (now += step);
    return judge(request, { ...OPTIONS, model: modelOfYaml(""), clock });
  };

  it("are checked, all of them, within their time", () => {
    expect(codes(within(1))).toEqual(["REGEX_INVALID"]);
  });

  it("are left to the model beyond it, with a warning that says how many", () => {
    const { answer, warnings } = within(50);
    expect(answer).toBe("warned");
    expect(warnings[0]).toMatch(/^2 patterns are not checked here, .* \(LIMIT_EXCEEDED\)$/);
  });
});

it("an annotation that says what paths mean is looked at like a field", () => {
  const before = ingress("shop", "shop.example.com", ["/"], OLD);
  const after = ingress("shop", "shop.example.com", ["/"], OLD, "{njet.org/use-regex: maybe}");
  expect(codes(verdictOnUpdate(before, after))).toEqual(["ANNOTATION_INVALID"]);
});

it("an error that stays is refused where anything else of the content changes", () => {
  expect(verdictOnUpdate(BROKEN, BROKEN.replace("no-slash", "other-slash")).answer).toBe("refused");
});

it("no request makes it throw, and every answer to an object that comes is what its state says", () => {
  const routing = randomChange.filter(({ kind, object }) => kind !== "Secret" && object !== undefined);
  fc.assert(
    fc.property(fc.array(randomChange, { maxLength: 30 }), routing, (others, change) => {
      const model = modelOf([]);
      model.update(others.filter(({ name, kind }) => name !== change.name || kind !== change.kind));
      const request = readReview(reviewFor(change.object as SourceObject));
      const verdict = judge(request, { model, ...OPTIONS });
      expect(JSON.parse(JSON.stringify(reviewOf(request, verdict)))).toMatchObject({
        response: { allowed: verdict.answer !== "refused" },
      });
      if (verdict.answer === "passed") return;
      const dated = structuredClone(change.object as SourceObject);
      dated.metadata.creationTimestamp ??= new Date(NOW).toISOString();
      model.update([{ ...change, object: dated }]);
      const state = model.problems(change);
      if (state?.state === "Invalid") expect(verdict.refusal?.code).toBe(422);
      if (state?.state === "Valid" && verdict.refusal !== undefined) expect(codes(verdict)).toContain("HOST_IN_USE");
      if (state?.reason === "Rejected") expect(verdict.answer).toBe("refused");
    }),
    { numRuns: 500, seed: 7 },
  );
});

it("no JSON value in place of the object makes it throw", () => {
  fc.assert(
    fc.property(fc.constantFrom("CREATE", "UPDATE"), fc.jsonValue(), fc.jsonValue(), (operation, object, oldObject) => {
      const kinds = parseYaml(`${GOOD}\n---\n${ingress("i", "a.example.com", ["/"])}`);
      for (const known of kinds) {
        const request = readReview(reviewFor(known, { operation, object, oldObject }));
        judge(request, { model: modelOfYaml(""), ...OPTIONS });
      }
    }),
    { numRuns: 500, seed: 8 },
  );
});
