import { beforeAll, describe, expect, it } from "vitest";
import { cleanUpAfterEach } from "../support/harness.js";
import { installed, noCluster, useCluster, useKubectl } from "./cluster-support.js";
import { definition, ingress, ingressClass, service } from "./objects.js";
import { answering, answerOf, startReplica } from "./run-support.js";

cleanUpAfterEach();
const current = useCluster();
const kubectl = useKubectl(current);
const LONG = { timeout: 30_000, interval: 50 };
const ADDRESSES = ["--publish-status-address", "192.0.2.10,edge.example.com"];

/** The row of one object, without its age. */
async function row(resource: string, name: string): Promise<Record<string, string> | undefined> {
  const found = (await kubectl().table("get", resource)).find(({ NAME }) => NAME === name);
  if (found === undefined) return undefined;
  expect(found.AGE).toMatch(/^\d+[smh]/);
  const { AGE: _, ...rest } = found;
  return rest;
}

/** Reasons of the Events of an object, by `kubectl events`. */
async function reasons(kind: string, name: string): Promise<string[]> {
  const rows = await kubectl().table("events", "--for", `${kind}/${name}`);
  return [...new Set(rows.map(({ TYPE, REASON }) => `${TYPE} ${REASON}`))].sort();
}

beforeAll(async () => {
  if (noCluster) return;
  await kubectl().apply(
    definition("VirtualServer"),
    definition("VirtualServerRoute"),
    ingressClass("njet", "njet.org/ingress-controller"),
  );
  await installed(current());
});

describe.skipIf(noCluster)("objects that kubectl writes", () => {
  it("are served as they are created, edited and deleted", async () => {
    const replica = await startReplica(current());
    const host = "shop.example.com";
    await kubectl().apply(answering("shop", "created"));
    await expect.poll(() => answerOf(replica, host), LONG).toBe("created");
    const edited = [{ path: "/", action: { return: { body: "edited" } } }];
    await kubectl().run("patch", "vs", "shop", "--type=merge", "-p", JSON.stringify({ spec: { routes: edited } }));
    await expect.poll(() => answerOf(replica, host), LONG).toBe("edited");
    await kubectl().run("delete", "vs", "shop");
    await expect.poll(() => answerOf(replica, host), LONG).toBe("404");
  });

  it("show their state, host, addresses and ports in columns, by their short names", async () => {
    await startReplica(current(), ...ADDRESSES);
    await kubectl().apply(answering("columns", "good"));
    await kubectl().run("wait", "--for=condition=Ready", "--timeout=30s", "vs/columns");
    const good = { STATE: "Valid", HOST: "columns.example.com", IP: "192.0.2.10", PORTS: "[80,443]" };
    expect(await row("vs", "columns")).toEqual({ NAME: "columns", ...good });
    await kubectl().apply({
      apiVersion: "k8s.njet.org/v1",
      kind: "VirtualServerRoute",
      metadata: { name: "lonely", namespace: "default" },
      spec: { ingressClassName: "njet", host: "nobody.example.com", subroutes: [] },
    });
    await expect.poll(() => row("vsr", "lonely"), LONG).toMatchObject({ STATE: "Warning", HOST: "nobody.example.com" });
    await kubectl().apply(service("web"), ingress("web"));
    await expect
      .poll(() => row("ingress", "web"), LONG)
      .toMatchObject({ CLASS: "njet", HOSTS: "web.example.com", ADDRESS: "192.0.2.10,edge.example.com" });
  });

  it("are told of in Events: taken, taken with a warning, refused, and lost to an older object", async () => {
    await startReplica(current(), ...ADDRESSES);
    const object = answering("events", "good");
    await kubectl().apply(object);
    await expect.poll(() => reasons("VirtualServer", "events"), LONG).toEqual(["Normal AddedOrUpdated"]);
    const route = { path: "/", action: { pass: "web" } };
    const upstreams = [{ name: "web", service: "missing", port: 80 }];
    await kubectl().apply({ ...object, spec: { ...(object.spec as object), upstreams, routes: [route] } });
    await expect.poll(() => reasons("VirtualServer", "events"), LONG).toContain("Warning AddedOrUpdatedWithWarning");
    await kubectl().apply({ ...object, spec: { ...(object.spec as object), upstreams: [], routes: [route] } });
    await expect.poll(() => reasons("VirtualServer", "events"), LONG).toContain("Warning Rejected");
    expect(await kubectl().run("describe", "vs", "events")).toContain('there is no upstream "web" in spec.upstreams');
    await kubectl().apply(object);

    const rival = { ...answering("rival", "other"), spec: answering("events", "other").spec };
    // Ages are in whole seconds: the one that stands was there before.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await kubectl().apply(rival);
    await expect.poll(() => row("vs", "rival"), LONG).toMatchObject({ STATE: "Warning" });
    expect(await reasons("VirtualServer", "rival")).toEqual(["Warning Rejected"]);
    expect(await kubectl().run("describe", "vs", "rival")).toContain("VirtualServer/default/events is older");
  });

  it("that are wrong in their shape are refused before they are stored, with the field", async () => {
    const object = answering("shapeless", "x");
    const routes = [{ path: "/", action: { return: { body: "x" }, pass: "web" } }];
    const answer = await kubectl().attempt(
      ["apply", "-f", "-"],
      JSON.stringify({ ...object, spec: { ...(object.spec as object), routes } }),
    );
    expect(answer.status).toBe(1);
    expect(answer.stderr).toContain("spec.routes[0].action");
  });

  it("are explained by kubectl, field by field", async () => {
    expect(await kubectl().run("explain", "vs.spec.routes.errorPages.codes")).toMatch(/FIELD: codes <\[\]integer>/);
  });
});
