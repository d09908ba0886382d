import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { makeFolder, put, runCli } from "./cli-support.js";

cleanUpAfterEach();

describe("--validating-webhook", () => {
  it("is refused without a certificate: an API server would not trust one made at the start", async () => {
    const { status, stderr } = await runCli(["run", "--validating-webhook", "0"]);
    expect(status).toBe(1);
    expect(stderr).toContain("--validating-webhook: needs --validating-webhook-certificate");
  });

  it("is refused for a folder, about which no API server asks", async () => {
    const webhook = ["--validating-webhook", "0", "--validating-webhook-certificate", "x"];
    const { status, stderr } = await runCli(["run", "--config-dir", makeFolder(), ...webhook]);
    expect(status).toBe(1);
    expect(stderr).toContain("--validating-webhook: there is no API server");
  });

  it("ends the start where another program has the port", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    cleanup(() => other.close());
    const { port } = other.address() as { port: number };
    const folder = makeFolder();
    const kubeconfig = {
      clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
      users: [{ name: "u", user: { token: "t" } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    };
    put(folder, "kubeconfig", JSON.stringify(kubeconfig));
    const free = ["--address", "127.0.0.1", "--http-port", "0", "--https-port", "0", "--metrics-port", "0"];
    const webhook = ["--validating-webhook", String(port), "--validating-webhook-certificate", folder];
    const { status, stderr } = await runCli(["run", "--kubeconfig", join(folder, "kubeconfig"), ...free, ...webhook]);
    expect(status).toBe(1);
    expect(stderr).toContain("another program has the port");
    expect(stderr).toContain("--validating-webhook");
  });
});
