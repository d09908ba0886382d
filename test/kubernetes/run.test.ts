import { beforeAll, describe, expect, it } from "vitest";
import { LEASE_TIMES } from "../../controller/kubernetes/lease.js";
import { Child, ROOT } from "../cli/cli-support.js";
import type { KubeObject } from "../real/kube/client.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { installed, noCluster, useCluster } from "./cluster-support.js";
import { definition, ingress, ingressClass, service } from "./objects.js";
import { answering, answerOf, type Replica, startReplica } from "./run-support.js";

cleanUpAfterEach();
const current = useCluster();
const OURS = "njet.org/ingress-controller";
const LONG = { timeout: 30_000, interval: 20 };

interface Status {
  state: string;
  reason: string;
  message: string;
  observedGeneration: number;
  externalEndpoints: unknown[];
  conditions: { type: string; status: string }[];
}

async function statusOf(object: KubeObject): Promise<Partial<Status>> {
  return ((await current().admin.get(object))?.status ?? {}) as Partial<Status>;
}

async function eventsOf(name: string): Promise<{ type: string; reason: string; note: string; count: number }[]> {
  const events = await current().admin.list("/apis/events.k8s.io/v1/namespaces/default/events");
  return events
    .filter((event) => (event.regarding as { name: string }).name === name)
    .map(({ type, reason, note, series }) => ({
      type: String(type),
      reason: String(reason),
      note: String(note),
      count: (series as { count: number } | undefined)?.count ?? 1,
    }));
}

function answers(replica: Replica, host: string) {
  return expect.poll(() => answerOf(replica, `${host}.example.com`), LONG);
}

beforeAll(async () => {
  if (noCluster) return;
  await current().admin.applyAll([definition("VirtualServer"), definition("VirtualServerRoute")]);
  await current().admin.apply(ingressClass("njet", OURS));
  await installed(current());
});

describe.skipIf(noCluster)("run, in a cluster", () => {
  it("serves what is there before it says so, and follows what comes, changes and goes", async () => {
    const { admin } = current();
    await admin.apply(answering("first", "one"));
    const replica = await startReplica(current());
    expect(await answerOf(replica, "first.example.com")).toBe("one");
    expect((await ask(replica.metrics, { path: "/readyz" })).status).toBe(200);
    await admin.apply(answering("first", "two"));
    await answers(replica, "first").toBe("two");
    await admin.apply(answering("second", "new"));
    await answers(replica, "second").toBe("new");
    await admin.delete(answering("second", ""));
    await answers(replica, "second").toBe("404");
    expect(await answerOf(replica, "first.example.com")).toBe("two");
  });

  it("tells in status and Events what became of an object", async () => {
    const { admin } = current();
    await startReplica(current(), "--publish-status-address", "192.0.2.10,edge.example.com");
    const object = answering("told", "good");
    await admin.apply(object);
    await expect
      .poll(() => statusOf(object), LONG)
      .toMatchObject({
        state: "Valid",
        reason: "AddedOrUpdated",
        observedGeneration: 1,
        externalEndpoints: [
          { ip: "192.0.2.10", ports: "[80,443]" },
          { hostname: "edge.example.com", ports: "[80,443]" },
        ],
        conditions: [{ type: "Ready", status: "True" }],
      });
    // The schema of the kind does not compile patterns.
    await admin.patch(object, { spec: { routes: [{ path: "~ (", action: { return: { body: "bad" } } }] } });
    await expect
      .poll(() => statusOf(object), LONG)
      .toMatchObject({
        state: "Invalid",
        reason: "Rejected",
        observedGeneration: 2,
        conditions: [{ type: "Ready", status: "False" }],
      });
    const { message } = await statusOf(object);
    expect(message).toContain("spec.routes[0].path");
    await expect
      .poll(() => eventsOf("told"), LONG)
      .toEqual(
        expect.arrayContaining([
          expect.objectContaining({ type: "Normal", reason: "AddedOrUpdated" }),
          expect.objectContaining({ type: "Warning", reason: "Rejected", note: message }),
        ]),
      );
    await admin.apply(object);
    await expect.poll(() => statusOf(object), LONG).toMatchObject({ state: "Valid", observedGeneration: 3 });
    // The same is told again by the Event that is there.
    const normal = async () => (await eventsOf("told")).filter(({ type }) => type === "Normal");
    await expect.poll(normal, LONG).toMatchObject([{ count: 2 }]);
  });

  it("tells a VirtualServerRoute who sends requests to it, or that nobody does", async () => {
    const { admin } = current();
    await startReplica(current());
    const route: KubeObject = {
      apiVersion: "k8s.njet.org/v1",
      kind: "VirtualServerRoute",
      metadata: { name: "part", namespace: "default" },
      spec: {
        ingressClassName: "njet",
        host: "whole.example.com",
        subroutes: [{ path: "/part", action: { return: { body: "part" } } }],
      },
    };
    const whole = answering("whole", "whole");
    await admin.apply(route);
    await expect.poll(() => statusOf(route), LONG).toMatchObject({ reason: "NoVirtualServerFound", referencedBy: "" });
    await admin.apply({
      ...whole,
      spec: { ...(whole.spec as object), routes: [{ path: "/part", route: "default/part" }] },
    });
    await expect
      .poll(() => statusOf(route), LONG)
      .toMatchObject({ state: "Valid", reason: "AddedOrUpdated", referencedBy: "default/whole" });
    await admin.delete(whole);
    await expect.poll(() => statusOf(route), LONG).toMatchObject({ reason: "NoVirtualServerFound", referencedBy: "" });
  });

  it("publishes the addresses of a Service on Ingresses, and no other class's", async () => {
    const { admin } = current();
    const edge: KubeObject = { ...service("edge"), spec: { ports: [{ port: 80 }], externalIPs: ["192.0.2.77"] } };
    await admin.applyAll([edge, service("ours"), ingress("ours"), ingress("theirs", "other")]);
    await startReplica(current(), "--publish-service", "default/edge");
    const published = async (name: string) => (await admin.get(ingress(name)))?.status;
    await expect.poll(() => published("ours"), LONG).toEqual({ loadBalancer: { ingress: [{ ip: "192.0.2.77" }] } });
    await admin.patch(edge, { spec: { externalIPs: ["192.0.2.78"] } });
    await expect.poll(() => published("ours"), LONG).toEqual({ loadBalancer: { ingress: [{ ip: "192.0.2.78" }] } });
    expect(await published("theirs")).toEqual({ loadBalancer: {} });
  });

  it("withdraws an object whose class changes away, also while it was down", async () => {
    const { admin } = current();
    await admin.applyAll([answering("moved", "here"), answering("left", "here")]);
    const replica = await startReplica(current());
    expect(await answerOf(replica, "moved.example.com")).toBe("here");
    await admin.apply(answering("moved", "there", "other"));
    await answers(replica, "moved").toBe("404");
    replica.process.kill("SIGTERM");
    expect((await replica.ended).status).toBe(0);
    await admin.apply(answering("left", "there", "other"));
    const next = await startReplica(current());
    expect(await answerOf(next, "left.example.com")).toBe("404");
    expect(await answerOf(next, "moved.example.com")).toBe("404");
  });

  it("serves objects that name no class only while our class is the default one", async () => {
    const { admin } = current();
    await admin.apply(answering("unnamed", "default", null));
    const replica = await startReplica(current());
    expect(await answerOf(replica, "unnamed.example.com")).toBe("404");
    await admin.apply(ingressClass("njet", OURS, true));
    await answers(replica, "unnamed").toBe("default");
    await admin.apply(ingressClass("njet", OURS));
    await answers(replica, "unnamed").toBe("404");
  });

  it("serves the classes of another controller name where it is given", async () => {
    const { admin } = current();
    await admin.applyAll([ingressClass("inner", "example.com/inner"), answering("inside", "inner", "inner")]);
    const replica = await startReplica(
      current(),
      "--controller-class",
      "example.com/inner",
      "--ingress-class",
      "inner",
    );
    expect(await answerOf(replica, "inside.example.com")).toBe("inner");
    expect(await answerOf(replica, "first.example.com")).toBe("404");
  });

  it("goes on serving without an API server, and follows it once it is back", async () => {
    const { admin } = current();
    await admin.apply(answering("steady", "before"));
    const replica = await startReplica(current());
    const wrong: string[] = [];
    let asking = true;
    const load = (async () => {
      for (; asking; await new Promise((resolve) => setTimeout(resolve, 2))) {
        const answer = await answerOf(replica, "steady.example.com").catch(String);
        if (answer !== "before" && answer !== "after") wrong.push(answer);
      }
    })();
    await current().killApiServer();
    await current().startApiServer();
    await current().admin.apply(answering("steady", "after"));
    await answers(replica, "steady").toBe("after");
    asking = false;
    await load;
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(noCluster)("a cluster that can't be reached", () => {
  it("is waited for, and SIGTERM ends the wait", async () => {
    const ports = ["--address", "127.0.0.1", "--http-port", "0", "--https-port", "0", "--metrics-port", "0"];
    const nobody = current().kubeconfig("admin", "https://127.0.0.1:1");
    const child = new Child(`${ROOT}dist/controller/cli/main.js`, ["run", "--kubeconfig", nobody, ...ports]);
    await child.until("it says so", () => child.log().find((line) => line.message === "cannot list"));
    expect(child.log().some((line) => line.message === "serving")).toBe(false);
    child.process.kill("SIGTERM");
    expect((await child.ended).status).toBe(0);
  });
});

describe.skipIf(noCluster)("two replicas", () => {
  const specOf = async (name: string) => {
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace: "default" } };
    return ((await current().admin.get(lease))?.spec ?? {}) as Record<string, string | undefined>;
  };
  const holder = async (name: string) => (await specOf(name)).holderIdentity ?? "";
  /** A time of the Lease itself, in milliseconds. */
  const timeOf = async (name: string, field: "acquireTime" | "renewTime") =>
    Date.parse((await specOf(name))[field] ?? "");
  const leads = (replica: Replica) => replica.log().some((line) => line.message === "leading");

  it("have one leader; another one takes over when it is killed, and status stays", async () => {
    const { admin } = current();
    const address = ["--publish-status-address", "192.0.2.10", "--leader-election-lease", "killed"];
    const first = await startReplica(current(), ...address);
    await expect.poll(() => leads(first), LONG).toBe(true);
    const second = await startReplica(current(), ...address);
    const object = answering("kept", "x");
    await admin.apply(object);
    await expect.poll(() => statusOf(object), LONG).toMatchObject({ state: "Valid" });
    const before = await statusOf(object);
    expect(leads(second)).toBe(false);
    const leader = async (replica: Replica) =>
      (await ask(replica.metrics, { path: "/stats" })).body.match(/^njet_kic_leader (\d)$/m)?.[1];
    expect([await leader(first), await leader(second)]).toEqual(["1", "0"]);
    const held = await holder("killed");
    first.process.kill("SIGKILL");
    await first.ended;
    const renewed = await timeOf("killed", "renewTime");
    await expect.poll(() => leads(second), LONG).toBe(true);
    expect(await holder("killed")).not.toBe(held);
    // By the times of the Lease itself: the new leader has it within 20 s of the last renewal of the dead one.
    expect((await timeOf("killed", "acquireTime")) - renewed).toBeLessThan(20_000);
    expect(await statusOf(object)).toEqual(before);
    await admin.apply(answering("kept-too", "y"));
    await expect.poll(() => statusOf(answering("kept-too", "y")), LONG).toMatchObject({ state: "Valid" });
  });

  it("need not wait for the lease to run out when the leader ends in good order", async () => {
    const lease = ["--leader-election-lease", "released"];
    const first = await startReplica(current(), ...lease);
    await expect.poll(() => leads(first), LONG).toBe(true);
    const second = await startReplica(current(), ...lease);
    const held = await holder("released");
    const renewed = await timeOf("released", "renewTime");
    first.process.kill("SIGTERM");
    await first.ended;
    // Nobody's, or already the other one's.
    expect(await holder("released")).not.toBe(held);
    await expect.poll(() => leads(second), LONG).toBe(true);
    // By the times of the Lease itself: whoever waits for it to run out has it no sooner than that after a renewal.
    expect((await timeOf("released", "acquireTime")) - renewed).toBeLessThan(LEASE_TIMES.duration);
    second.process.kill("SIGTERM");
    await second.ended;
  });
});
