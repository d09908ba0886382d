// Runs in a network namespace of its own: a real API server, the command, and peers with cluster addresses that are checked.
// Arguments: the folder with the programs. Prints what was observed, as JSON.
import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import type { KubeObject } from "../../real/kube/client.js";
import { TestCluster } from "../../real/kube/cluster.js";
import { ingress, ingressClass, service, slice } from "../objects.js";

const MAIN = fileURLToPath(new URL("../../../controller/cli/main.js", import.meta.url));
const PEERS = ["10.1.0.1", "10.1.0.2"];
const DEADLINE = 60_000;

function peer(address: string): Promise<Server> {
  const server = createServer((_, response) => response.end(address));
  return new Promise((resolve) => server.listen(8080, address, () => resolve(server)));
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + DEADLINE;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const checked: KubeObject = {
  ...ingress("shop"),
  metadata: {
    name: "checked",
    namespace: "default",
    annotations: { "njet.org/health-checks": "true", "njet.org/health-check-interval": "100ms" },
  },
};

const cluster = await TestCluster.start(process.argv[2]);
let child: ChildProcess | undefined;
try {
  const { admin } = cluster;
  await admin.apply(ingressClass("njet", "njet.org/ingress-controller"));
  const [, second] = await Promise.all(PEERS.map(peer));
  await admin.applyAll([service("shop"), slice("shop-1", "shop", PEERS)]);
  await until("the kind is known", () =>
    admin
      .apply(checked)
      .then(() => true)
      .catch(() => undefined),
  );
  const published = "--publish-status-address=192.0.2.1";
  const ports = [
    published,
    "--address=127.0.0.1",
    "--http-port=0",
    "--https-port=0",
    "--metrics-port=off",
    "--no-access-log",
  ];
  child = spawn(process.execPath, [MAIN, "run", "--kubeconfig", cluster.kubeconfig(), ...ports], { stdio: "ignore" });
  const told = async (reason: string) => {
    const events = await admin.list("/apis/events.k8s.io/v1/namespaces/default/events");
    const found = events.find((event) => event.reason === reason);
    const { kind, name } = (found?.regarding ?? {}) as { kind?: string; name?: string };
    return found && { type: found.type, object: `${kind}/${name}`, note: found.note };
  };
  // Its first passed check is no news; that it is known to be up is shown by its way down.
  await until("the object is served", async () =>
    JSON.stringify(await admin.get(checked)).includes("192.0.2.1") ? true : undefined,
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  second.close();
  second.closeAllConnections();
  const down = await until("the peer is told of as down", () => told("PeerDown"));
  await peer(PEERS[1]);
  const up = await until("the peer is told of as up", () => told("PeerUp"));
  process.stdout.write(JSON.stringify({ down, up }));
} finally {
  child?.kill("SIGKILL");
  await cluster.stop();
}
process.exit(0);
