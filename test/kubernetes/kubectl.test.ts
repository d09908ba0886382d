import { beforeAll, describe, expect, it } from "vitest";
import type { KubeObject } from "../real/kube/client.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { installed, noCluster, useCluster, useKubectl } from "./cluster-support.js";
import { definition, ingress, ingressClass, service } from "./objects.js";
import { answering, answerOf, type Replica, startReplica } from "./run-support.js";

cleanUpAfterEach();
const current = useCluster();
const kubectl = useKubectl(current);
const LONG = { timeout: 60_000, interval: 100 };

function answers(replica: Replica, host: string) {
  return expect.poll(() => answerOf(replica, `${host}.example.com`), LONG);
}

/** A row of `kubectl get vs`. */
async function row(name: string): Promise<Record<string, string>> {
  return (await kubectl().table("get", "vs", name))[0] ?? {};
}

/** What `kubectl get events` lists of an object, as `type reason`. */
async function eventsOf(name: string): Promise<string[]> {
  const rows = await kubectl().table("get", "events");
  return rows.filter(({ OBJECT }) => OBJECT?.endsWith(`/${name}`)).map(({ TYPE, REASON }) => `${TYPE} ${REASON}`);
}

/** A VirtualServer with an upstream of `shop`. */
function passing(name: string, upstream: Record<string, unknown>): KubeObject {
  const server = answering(name, "");
  const upstreams = [{ name: "main", service: "shop", port: 80, ...upstream }];
  return {
    ...server,
    spec: { ...(server.spec as object), upstreams, routes: [{ path: "/", action: { pass: "main" } }] },
  };
}

beforeAll(async () => {
  if (noCluster) return;
  await current().admin.applyAll([definition("VirtualServer"), definition("VirtualServerRoute")]);
  await current().admin.applyAll([ingressClass("njet", "njet.org/ingress-controller"), service("shop")]);
  await installed(current());
});

describe.skipIf(noCluster)("what kubectl", () => {
  it("creates, edits and deletes is what requests meet", async () => {
    const replica = await startReplica(current());
    await kubectl().apply(answering("shop", "one"));
    await answers(replica, "shop").toBe("one");
    const edit = [{ op: "replace", path: "/spec/routes/0/action/return/body", value: "two" }];
    await kubectl().run("patch", "vs", "shop", "--type=json", `-p=${JSON.stringify(edit)}`);
    await answers(replica, "shop").toBe("two");
    await kubectl().run("delete", "vs", "shop");
    await answers(replica, "shop").toBe("404");
  });

  it("gets of a VirtualServer are its state, host, addresses and ports", async () => {
    await startReplica(current(), "--publish-status-address", "192.0.2.10");
    await kubectl().apply(answering("table", "x"));
    await expect
      .poll(() => row("table"), LONG)
      .toMatchObject({ NAME: "table", STATE: "Valid", HOST: "table.example.com", IP: "192.0.2.10", PORTS: "[80,443]" });
    expect((await row("table")).AGE).toMatch(/^\d+[smh]/);
    await kubectl().run("wait", "vs/table", "--for=condition=Ready", "--timeout=30s");
  });

  it("lists as Events, and describes, says what became of each object, by the family's reasons", async () => {
    await startReplica(current());
    const rejected = answering("bad", "x");
    const pattern = [{ path: "~ (", action: { return: { body: "x" } } }];
    await kubectl().apply(
      answering("good", "x"),
      passing("warned", { service: "none" }),
      passing("refused", { type: "grpc" }),
      { ...rejected, spec: { ...(rejected.spec as object), routes: pattern } },
      {
        apiVersion: "k8s.njet.org/v1",
        kind: "VirtualServerRoute",
        metadata: { name: "alone", namespace: "default" },
        spec: {
          ingressClassName: "njet",
          host: "alone.example.com",
          subroutes: [{ path: "/", action: { return: { body: "x" } } }],
        },
      },
    );
    for (const [name, event] of [
      ["good", "Normal AddedOrUpdated"],
      ["warned", "Warning AddedOrUpdatedWithWarning"],
      ["refused", "Warning AddedOrUpdatedWithError"],
      ["bad", "Warning Rejected"],
      ["alone", "Warning NoVirtualServerFound"],
    ]) {
      await expect.poll(() => eventsOf(name), LONG).toEqual([event]);
    }
    expect(await kubectl().run("describe", "vs", "refused")).toMatch(/Events:[\s\S]*AddedOrUpdatedWithError/);
    const ready = ["get", "vs", "refused", '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}'];
    expect(await kubectl().run(...ready)).toBe("False");
    await kubectl().apply(passing("refused", {}));
    await expect.poll(() => kubectl().run(...ready), LONG).toBe("True");
  });

  it("gets of an Ingress is the published address", async () => {
    await startReplica(current(), "--publish-status-address", "192.0.2.10,edge.example.com");
    await kubectl().apply(ingress("shop"));
    const shown = async () => (await kubectl().table("get", "ingress", "shop"))[0];
    await expect
      .poll(shown, LONG)
      .toMatchObject({ CLASS: "njet", HOSTS: "shop.example.com", ADDRESS: "192.0.2.10,edge.example.com" });
  });

  it("describes of an object that lost its host is who has it", async () => {
    await startReplica(current());
    await kubectl().apply(answering("owner", "x"));
    // Ages are in whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await kubectl().apply({ ...answering("rival", "y"), spec: answering("owner", "y").spec });
    await expect.poll(() => row("rival"), LONG).toMatchObject({ STATE: "Warning" });
    expect(await kubectl().run("describe", "vs", "rival")).toContain("VirtualServer/default/owner is older");
  });

  it("applies in a wrong shape is refused before it is stored, with the field", async () => {
    const object = answering("shapeless", "x");
    const routes = [{ path: "/", action: { return: { body: "x" }, pass: "web" } }];
    const text = JSON.stringify({ ...object, spec: { ...(object.spec as object), routes } });
    const answer = await kubectl().attempt(["apply", "-f", "-"], text);
    expect(answer.status).toBe(1);
    expect(answer.stderr).toContain("spec.routes[0].action");
  });

  it("explains is every field", async () => {
    expect(await kubectl().run("explain", "vs.spec.routes.errorPages.codes")).toMatch(/FIELD: codes <\[\]integer>/);
  });
});
