import { describe, expect, it } from "vitest";
import { ApiError } from "../../controller/kubernetes/api-error.js";
import { ReflectorMachine } from "../../controller/kubernetes/reflector-machine.js";
import { NAMESPACED_TYPES } from "../../controller/kubernetes/resource-type.js";

const SERVICES = NAMESPACED_TYPES.find(({ kind }) => kind === "Service")!;
const ROUTES = NAMESPACED_TYPES.find(({ kind }) => kind === "VirtualServer")!;

const GRANTS = NAMESPACED_TYPES.find(({ kind }) => kind === "ReferenceGrant")!;

const object = (name: string, resourceVersion: string) => ({
  metadata: { name, namespace: "default", resourceVersion },
});
const page = (items: unknown[], resourceVersion: string, token = "") => ({
  metadata: { resourceVersion, continue: token },
  items,
});
const names = (changes: { name: string; object: unknown }[]) =>
  changes.map((change) => `${change.object === undefined ? "-" : "+"}${change.name}`);
const gone = () => new ApiError(410, "Expired", "too old");

/** A machine that has listed `items`; no jitter. */
function listed(...items: unknown[]): ReflectorMachine {
  const machine = new ReflectorMachine(SERVICES, () => 0);
  machine.listed(page(items, "10"));
  return machine;
}

describe("a list", () => {
  it("goes on with the token of its page, and is complete with the last one", () => {
    const machine = new ReflectorMachine(SERVICES, () => 0);
    expect(machine.next()).toEqual({ kind: "list", continueToken: "" });
    expect(names(machine.listed(page([object("a", "1")], "10", "next")))).toEqual(["+a"]);
    expect(machine.complete).toBe(false);
    expect(machine.next()).toEqual({ kind: "list", continueToken: "next" });
    machine.listed(page([object("b", "2")], "10"));
    expect(machine.complete).toBe(true);
    expect(machine.next()).toEqual({ kind: "watch", resourceVersion: "10", timeoutSeconds: 300 });
  });

  it("starts over at once when its token has expired, and tells nothing twice", () => {
    const machine = new ReflectorMachine(SERVICES, () => 0);
    machine.listed(page([object("a", "1")], "10", "next"));
    expect(machine.listFailed(gone())).toEqual([]);
    expect(machine.next()).toEqual({ kind: "list", continueToken: "" });
    expect(names(machine.listed(page([object("a", "1"), object("b", "12")], "12")))).toEqual(["+b"]);
  });

  it("that fails is tried again after pauses that grow to ten seconds, and never before the server wants it", () => {
    const machine = new ReflectorMachine(SERVICES, () => 0);
    const pauses = Array.from({ length: 8 }, () => {
      machine.listFailed(new Error("refused"));
      const step = machine.next();
      expect(machine.next().kind).toBe("list");
      return step.kind === "wait" ? step.ms : 0;
    });
    expect(pauses).toEqual([200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    machine.listFailed(new ApiError(429, "TooManyRequests", "slow down", 30_000));
    expect(machine.next()).toEqual({ kind: "wait", ms: 30_000 });
  });

  it("of a kind that is not installed is complete and empty", () => {
    const machine = new ReflectorMachine(ROUTES, () => 0);
    machine.listFailed(new ApiError(404, "NotFound", "no such kind"));
    expect([machine.complete, machine.missing]).toEqual([true, true]);
  });

  it("does not take objects for gone because of one 404, but because of three", () => {
    const machine = new ReflectorMachine(ROUTES, () => 0);
    machine.listed(page([object("a", "1")], "10"));
    const absent = () => names(machine.listFailed(new ApiError(404, "NotFound", "no such kind")));
    expect([absent(), absent(), absent()]).toEqual([[], [], ["-a"]]);
  });

  it("is asked for in an older version where the server does not have the wanted one, without a pause", () => {
    const machine = new ReflectorMachine(GRANTS, () => 0);
    const absent = () => names(machine.listFailed(new ApiError(404, "NotFound", "no such version")));
    expect(machine.type.apiVersion).toBe("gateway.networking.k8s.io/v1");
    absent();
    expect([machine.type.apiVersion, machine.missing, machine.complete]).toEqual([
      "gateway.networking.k8s.io/v1beta1",
      false,
      false,
    ]);
    expect(machine.next()).toEqual({ kind: "list", continueToken: "" });
    machine.listed(page([object("a", "1")], "10"));
    expect(machine.type.apiVersion).toBe("gateway.networking.k8s.io/v1beta1");
    machine.watchBegan(0);
    machine.watchEnded(10, gone());
    expect(machine.type.apiVersion).toBe("gateway.networking.k8s.io/v1");
  });

  it("is missing once the server has none of its versions, and then the wanted one is looked for again", () => {
    const machine = new ReflectorMachine(GRANTS, () => 0);
    const absent = () => names(machine.listFailed(new ApiError(404, "NotFound", "no such version")));
    absent();
    absent();
    expect([machine.missing, machine.type.apiVersion]).toEqual([true, "gateway.networking.k8s.io/v1"]);
    machine.next();
    machine.listed(page([object("a", "1")], "10"));
    const rounds = Array.from({ length: 3 }, () => [absent(), absent()]);
    expect(rounds).toEqual([
      [[], []],
      [[], []],
      [[], ["-a"]],
    ]);
  });

  it("keeps what is known when another version of it is read", () => {
    const machine = new ReflectorMachine(GRANTS, () => 0);
    machine.listFailed(new ApiError(404, "NotFound", "no such version"));
    machine.listed(page([object("a", "1"), object("b", "2")], "10"));
    machine.watchEnded(10, gone());
    expect(names(machine.listed(page([object("a", "1"), object("b", "3")], "11")))).toEqual(["+b"]);
  });

  it("that is forbidden keeps what is known", () => {
    const machine = listed(object("a", "1"));
    expect(machine.listFailed(new ApiError(403, "Forbidden", "no"))).toEqual([]);
    expect(machine.size).toBe(1);
  });
});

describe("a watch", () => {
  it("tells what comes, changes and goes, each once", () => {
    const machine = listed(object("a", "1"));
    const event = (type: string, name: string, version: string) =>
      names(machine.event({ type, object: object(name, version) }));
    expect(event("ADDED", "b", "11")).toEqual(["+b"]);
    expect(event("MODIFIED", "b", "12")).toEqual(["+b"]);
    expect(event("MODIFIED", "b", "12")).toEqual([]);
    expect(event("DELETED", "a", "13")).toEqual(["-a"]);
    expect(event("DELETED", "a", "13")).toEqual([]);
  });

  it("is resumed where the last event or bookmark was", () => {
    const machine = listed();
    machine.watchBegan(0);
    machine.event({ type: "BOOKMARK", object: { metadata: { resourceVersion: "77" } } });
    machine.watchEnded(60_000, undefined);
    expect(machine.next()).toEqual({ kind: "wait", ms: 1 });
    expect(machine.next()).toMatchObject({ kind: "watch", resourceVersion: "77" });
  });

  it.each([
    ["an answer", (machine: ReflectorMachine) => machine.watchEnded(10, gone())],
    [
      "an event",
      (machine: ReflectorMachine) => {
        let failure: unknown;
        try {
          machine.event({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } });
        } catch (error) {
          failure = error;
        }
        machine.watchEnded(10, failure);
      },
    ],
  ])("that is too old by %s lists anew, and tells of what went", (_, end) => {
    const machine = listed(object("a", "1"), object("b", "2"));
    machine.watchBegan(0);
    end(machine);
    expect(machine.next()).toEqual({ kind: "wait", ms: 1 });
    expect(machine.next().kind).toBe("list");
    expect(names(machine.listed(page([object("b", "2"), object("c", "20")], "20")))).toEqual(["+c", "-a"]);
  });

  it("that fails four times in a row doubts its resourceVersion and lists anew", () => {
    const machine = listed();
    const steps = Array.from({ length: 4 }, (_, round) => {
      machine.watchBegan(round);
      machine.watchEnded(round, new Error("reset"));
      machine.next();
      return machine.next().kind;
    });
    expect(steps).toEqual(["watch", "watch", "watch", "list"]);
  });

  it("refuses what is no event", () => {
    const machine = listed();
    for (const event of [undefined, 7, [], {}, { type: "ADDED" }, { type: "ADDED", object: { metadata: {} } }]) {
      expect(() => machine.event(event)).toThrow();
    }
  });
});
