import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ObjectChange, RoutingModel } from "../../controller/model/routing-model.js";
import { patternChecker } from "../support/core.js";
import { changeOf, modelOfYaml, parseYaml } from "./model-support.js";
import { randomChange } from "./random-changes.js";

const newModel = () =>
  new RoutingModel({ checker: patternChecker(), source: "folder", crossNamespace: { routes: "granted" } });
const ROUTING = ["Ingress", "VirtualServer", "VirtualServerRoute"];
const older = "creationTimestamp: '2024-01-01T00:00:00Z'";
const newer = "creationTimestamp: '2024-02-01T00:00:00Z'";

function server(name: string, age: string, host = "shop.example.com"): string {
  return `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: ${name}, ${age}}, spec: {host: ${host},
    routes: [{path: /, action: {return: {body: ${name}}}}]}}`;
}

function ingress(name: string, age: string, ...paths: string[]): string {
  const rules = paths.map(
    (path) => `{path: ${path}, pathType: Exact, backend: {service: {name: s, port: {number: 80}}}}`,
  );
  return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ${name}, ${age}}, spec: {
    rules: [{host: shop.example.com, http: {paths: [${rules}]}}]}}`;
}

const one = (text: string) => changeOf(parseYaml(text)[0]);

/** Everything that can be seen of a model. */
function seen(model: RoutingModel): unknown {
  return [model.snapshot(), model.allObjects(), model.counters];
}

describe("a probe", () => {
  it("answers what an update would, for any object among any others, and leaves the model as it is", () => {
    const routing = randomChange.filter(({ kind }) => ROUTING.includes(kind));
    fc.assert(
      fc.property(
        fc.array(randomChange, { maxLength: 40 }),
        fc.array(routing, { minLength: 1, maxLength: 3 }),
        (set, asked) => {
          const [model, twin] = [newModel(), newModel()];
          model.update(set);
          twin.update(set);
          for (const change of asked) {
            const untouched = seen(model);
            const { state } = model.probe(change);
            expect(seen(model)).toEqual(untouched);
            twin.update([change]);
            expect(state).toEqual(twin.problems(change));
            model.update([change]);
          }
        },
      ),
      { numRuns: 1500, seed: 5 },
    );
  });

  it("leaves nothing behind: the next change is as it would have been without", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(randomChange, randomChange), { minLength: 1, maxLength: 40 }), (pairs) => {
        const [model, twin] = [newModel(), newModel()];
        for (const [asked, made] of pairs) {
          model.probe(asked);
          expect(model.update([made])).toEqual(twin.update([made]));
        }
        expect(model.snapshot()).toEqual(twin.snapshot());
      }),
      { numRuns: 100, seed: 6 },
    );
  });

  it("builds nothing", () => {
    const model = modelOfYaml(server("a", older));
    const before = model.counters;
    model.probe(one(server("b", newer)));
    expect(model.counters).toEqual(before);
  });

  it("is not held up by what the proxy has refused of the object as it was: the change may be the repair", () => {
    const model = newModel();
    const { hosts } = model.update([one(server("a", older))]);
    const [[piece, rules]] = hosts;
    const steps = [{ step: "set-host" as const, rules: rules! }];
    model.settle(steps, [{ kind: "host", piece, code: "PROXY_STEP_FAILED", message: "refused" }]);
    expect(model.problems(one(server("a", older)))?.state).toBe("Invalid");
    expect(model.probe(one(server("a", older))).state?.state).toBe("Valid");
  });

  it("says that an object would be gone", () => {
    const model = modelOfYaml(server("a", older));
    expect(model.probe({ ...one(server("a", older)), object: undefined })).toEqual({ state: undefined, displaced: [] });
    expect(model.problems(one(server("a", older)))?.state).toBe("Valid");
  });
});

describe("what an object would displace", () => {
  const displaced = (model: RoutingModel, change: ObjectChange) =>
    model.probe(change).displaced.map(({ object, host }) => `${object} ${host}`);

  it("is the newer owner of a host that an older object turns to", () => {
    const model = modelOfYaml([server("new", newer), server("old", older, "other.example.com")].join("\n---\n"));
    expect(displaced(model, one(server("old", older)))).toEqual(["VirtualServer/default/new shop.example.com"]);
  });

  it("is the newer owner of a path that an older Ingress turns to", () => {
    const model = modelOfYaml([ingress("new", newer, "/a", "/b"), ingress("old", older, "/c")].join("\n---\n"));
    expect(displaced(model, one(ingress("old", older, "/c", "/d")))).toEqual([]);
    expect(displaced(model, one(ingress("old", older, "/c", "/b")))).toEqual(["Ingress/default/new shop.example.com"]);
  });

  it("is nobody who has lost already, whoever won", () => {
    const model = modelOfYaml([server("new", newer), server("old", older)].join("\n---\n"));
    expect(displaced(model, one(server("old", older)))).toEqual([]);
    const oldest = server("oldest", "creationTimestamp: '2023-01-01T00:00:00Z'");
    expect(displaced(model, one(oldest))).toEqual(["VirtualServer/default/old shop.example.com"]);
  });

  it("is nobody where the object itself is the newer one", () => {
    const model = modelOfYaml(server("old", older));
    const { state, displaced } = model.probe(one(server("new", newer)));
    expect([state?.reason, displaced]).toEqual(["Rejected", []]);
  });

  it("is no VirtualServerRoute: who delegates a path may take it back", () => {
    const part = `{apiVersion: k8s.njet.org/v1, kind: VirtualServerRoute, metadata: {name: part}, spec: {
      host: shop.example.com, subroutes: [{path: /part/a, action: {return: {body: part}}}]}}`;
    const whole = (
      first: string,
    ) => `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: whole}, spec: {
      host: shop.example.com, routes: [${first}{path: /part, route: part}]}}`;
    const model = modelOfYaml([part, whole("")].join("\n---\n"));
    const taken = one(whole("{path: /part/a, action: {return: {body: whole}}}, "));
    expect(displaced(model, taken)).toEqual([]);
    model.update([taken]);
    expect(model.problems(one(part))?.reason).toBe("Rejected");
  });
});
