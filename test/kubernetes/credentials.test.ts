import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { kubeconfig } from "../../controller/kubernetes/credentials.js";
import { makeFolder } from "../cli/cli-support.js";
import { cleanUpAfterEach } from "../support/harness.js";

cleanUpAfterEach();

/** A kubeconfig whose user is `user`, in a folder of its own. */
function write(user: Record<string, unknown>): { folder: string; file: string } {
  const folder = makeFolder();
  const file = join(folder, "config");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:6443/" } }],
    users: [
      { name: "someone", user: { tokenFile: "nowhere" } },
      { name: "u", user },
    ],
    contexts: [{ name: "x", context: { cluster: "c", user: "u", namespace: "edge" } }],
    "current-context": "x",
  };
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return { folder, file };
}

describe("a kubeconfig", () => {
  it("gives server, namespace and token of its current context", async () => {
    const access = await kubeconfig(write({ token: "t0" }).file).load();
    expect(access).toMatchObject({ server: "https://127.0.0.1:6443", namespace: "edge", authorization: "Bearer t0" });
  });

  it("with a tokenFile gives what stands there now, before a token of its own", async () => {
    const { folder, file } = write({ token: "t0", tokenFile: "secrets/token" });
    mkdirSync(join(folder, "secrets"));
    writeFileSync(join(folder, "secrets/token"), "t1\n");
    const credentials = kubeconfig(file);
    expect((await credentials.load()).authorization).toBe("Bearer t1");
    writeFileSync(join(folder, "secrets/token"), "t2\n");
    expect((await credentials.load()).authorization).toBe("Bearer t2");
  });

  it("whose tokenFile is missing or empty says so, and is not used without a token", async () => {
    const { folder, file } = write({ tokenFile: "token" });
    await expect(kubeconfig(file).load()).rejects.toThrow("the tokenFile token of");
    writeFileSync(join(folder, "token"), "\n");
    await expect(kubeconfig(file).load()).rejects.toThrow("is empty");
  });

  it("that is missing, or whose current context names no cluster, says so", async () => {
    await expect(kubeconfig(join(makeFolder(), "none")).load()).rejects.toThrow("ENOENT");
    const file = join(makeFolder(), "empty");
    writeFileSync(file, "{}");
    await expect(kubeconfig(file).load()).rejects.toThrow("names no cluster");
  });
});
