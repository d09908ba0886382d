import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { customResourceDefinitions } from "../../controller/crds/definition.js";
import { installed, noCluster, useCluster } from "../kubernetes/cluster-support.js";
import { strictVectors } from "../model/model-support.js";
import type { KubeObject } from "../real/kube/client.js";
import { EVERY_FIELD, errorsOf, isCustom, nearText, objectsOf, refusal } from "./crds-support.js";
import { EXCEPTIONS, type Exception, isException } from "./exceptions.js";

const current = useCluster();

beforeAll(async () => {
  if (noCluster) return;
  await current().admin.applyAll(customResourceDefinitions());
  await installed(current());
});

/** The custom objects of the vectors, all in the one namespace that there is. */
const VECTORS = strictVectors()
  .flatMap(({ objects }) => objects as unknown as KubeObject[])
  .filter(isCustom)
  .map((object): KubeObject => ({ ...object, metadata: { ...object.metadata, namespace: "default" } }));
const MATERIAL = [...EVERY_FIELD, ...VECTORS];

const anyValue = fc.oneof(
  { weight: 6, arbitrary: nearText },
  { weight: 2, arbitrary: fc.integer({ min: -1, max: 700 }) },
  { weight: 1, arbitrary: fc.constantFrom(null, true, false, "", [], {}, [null], [{}], 70_000, 1.5) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
);
/** What becomes of one place of an object. */
const change = fc.oneof(
  { weight: 5, arbitrary: anyValue.map((value) => () => value) },
  { weight: 1, arbitrary: fc.constant(() => undefined) },
  { weight: 1, arbitrary: fc.constant((value: unknown) => (Array.isArray(value) ? [...value, ...value] : [value])) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("http-snippets", "location-snippets", "typo", "pass", "backup", "matches")
      .map((name) => (value: unknown) => (isMap(value) ? { ...value, [name]: "x" } : value)),
  },
);
const places = fc.array(fc.nat(), { minLength: 0, maxLength: 10 });

/** A good object that is changed in one or two places. */
const changedObject = fc
  .tuple(fc.constantFrom(...MATERIAL), fc.array(fc.tuple(places, change), { minLength: 1, maxLength: 2 }))
  .map(([object, changes]) => {
    const spec = changes.reduce<unknown>((value, [steps, to]) => changeAt(value, steps, to), object.spec);
    // As it is after the way to the API server.
    return JSON.parse(JSON.stringify({ ...object, spec })) as KubeObject;
  });

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Goes down by `steps`, as far as there is something below, and changes what is there. */
function changeAt(value: unknown, [step, ...rest]: number[], to: (value: unknown) => unknown): unknown {
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  if (step === undefined || names.length === 0) return to(value);
  const name = names[step % names.length];
  const child = changeAt((value as Record<string, unknown>)[name], rest, to);
  if (Array.isArray(value)) return value.map((item, index) => (String(index) === name ? child : item));
  return { ...(value as object), [name]: child };
}

/** Holds what the API server says to an object against what the readers say. */
async function expectAgreement(object: KubeObject): Promise<void> {
  const refused = await refusal(current().admin, object);
  const errors = errorsOf(object);
  const said = errors.filter((problem) => !isException(problem));
  const told = JSON.stringify({ spec: object.spec, refused, errors });
  if (refused !== undefined) expect(errors, `refused, and good for the readers: ${told}`).not.toEqual([]);
  if (said.length > 0) expect(refused, `taken, and wrong for the readers: ${told}`).toBeDefined();
}

describe.skipIf(noCluster)("the definitions on the real API server", () => {
  it("take every custom object of the examples, and one with every field", async () => {
    const sample = objectsOf(new URL("../../examples/cafe/virtual-server.yaml", import.meta.url));
    for (const object of [...EVERY_FIELD, ...sample]) {
      expect(await refusal(current().admin, object), object.metadata.name).toBeUndefined();
      expect(errorsOf(object), object.metadata.name).toEqual([]);
    }
  });

  it("agree with the readers about every custom object of the vectors", async () => {
    expect(VECTORS.length).toBeGreaterThan(20);
    for (const object of VECTORS) await expectAgreement(object);
  });

  it("agree with the readers about objects that are changed in any place", async () => {
    await fc.assert(fc.asyncProperty(changedObject, expectAgreement), {
      numRuns: Number(process.env.RUNS ?? 2000),
      seed: Number(process.env.SEED ?? 3),
    });
  }, 600_000);

  it.each(EXCEPTIONS)("leave to the readers: $code, for $why", async ({ code, message, example }: Exception) => {
    const object = showing(example);
    expect(await refusal(current().admin, object)).toBeUndefined();
    const found = errorsOf(object).map((problem) => ({
      code: problem.code,
      matches: message?.test(problem.message) ?? true,
    }));
    expect(found).toContainEqual({ code, matches: true });
  });

  it.each([
    [{ route: "path: /, location-snippets: x, action: {pass: app}" }, "Forbidden: is refused: raw configuration"],
    [
      { route: "path: /, action: {pass: app, return: {body: x}}" },
      "needs exactly one of pass, redirect, return, proxy",
    ],
    [{ route: "path: /" }, "needs exactly one of action, splits, route"],
    [
      { route: "path: /, route: a/b, matches: [{conditions: [{header: a, value: b}], action: {pass: app}}]" },
      "has no matches",
    ],
    [
      { route: "path: /, splits: [{weight: 1, action: {pass: app}}, {weight: 98, action: {pass: app}}]" },
      "add up to 100",
    ],
    [
      {
        route:
          "path: /, matches: [{conditions: [{header: a, cookie: b, value: c}], action: {pass: app}}], action: {pass: app}",
      },
      "needs exactly one of header, cookie, argument, variable",
    ],
    [{ upstream: "healthCheck: {enable: true, persistent: true}" }, "persistent needs mandatory: true"],
    [
      { upstream: "healthCheck: {enable: true, headers: [{name: host, value: a}, {name: Host, value: b}]}" },
      "a request has one Host",
    ],
    [{ upstream: "sessionCookie: {enable: true}" }, "a cookie needs a name"],
    [{ upstream: "backup: other" }, "backup and backupPort are given together or not at all"],
    [{ upstream: "max-fails: 1}, {name: app, service: b, port: 80" }, "Duplicate value"],
  ])("say why they refuse %j", async (part, reason) => {
    expect(await refusal(current().admin, showing(part))).toContain(reason);
  });
});

/** A VirtualServer with a route, or further fields of its upstream `app`, as an example has them. */
function showing(example: Exception["example"]): KubeObject {
  const upstream = "upstream" in example ? example.upstream : "max-fails: 1";
  const route = "route" in example ? example.route : "path: /, action: {pass: app}";
  return {
    apiVersion: "k8s.njet.org/v1",
    kind: "VirtualServer",
    metadata: { name: "exception", namespace: "default" },
    spec: {
      host: "shop.example.com",
      upstreams: parse(`[{name: app, service: app-svc, port: 80, ${upstream}}]`),
      routes: parse(`[{${route}}]`),
    },
  };
}
