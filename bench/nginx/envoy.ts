/** Envoy with the same hosts, routes and peers, by a file: no control plane works beside it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { closedPort } from "../../test/support/peers.js";
import { Running, temporaryFolder } from "./contestants.js";
import { addressesOf, hostOf, SERVICES, servicesOf } from "./site.js";
import { installed } from "./tools.js";

export const ENVOY_VERSION = "1.40.0";
const TYPE = "type.googleapis.com/envoy.extensions";

function address(host: string, port: number) {
  return { socket_address: { address: host, port_value: port } };
}

function cluster(service: number, peerPort: number) {
  const endpoints = addressesOf(service).map((peer) => ({ endpoint: { address: address(peer, peerPort) } }));
  return {
    name: `service_${service}`,
    type: "STATIC",
    connect_timeout: "5s",
    load_assignment: { cluster_name: `service_${service}`, endpoints: [{ lb_endpoints: endpoints }] },
  };
}

function virtualHost(index: number) {
  const [root, cart] = servicesOf(index);
  const route = (prefix: string, service: number) => ({ match: { prefix }, route: { cluster: `service_${service}` } });
  return { name: hostOf(index), domains: [hostOf(index)], routes: [route("/cart", cart), route("/", root)] };
}

function configuration(port: number, peerPort: number, hosts: number) {
  const manager = {
    "@type": `${TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "bench",
    use_remote_address: true,
    http_filters: [{ name: "router", typed_config: { "@type": `${TYPE}.filters.http.router.v3.Router` } }],
    route_config: { name: "bench", virtual_hosts: Array.from({ length: hosts }, (_, i) => virtualHost(i)) },
  };
  const listener = {
    name: "http",
    address: address("127.0.0.1", port),
    filter_chains: [{ filters: [{ name: "http", typed_config: manager }] }],
  };
  const clusters = Array.from({ length: SERVICES }, (_, service) => cluster(service, peerPort));
  return { static_resources: { listeners: [listener], clusters } };
}

/** One worker thread, not necessarily serving yet. Rejects with ToolUnavailable where Envoy can't be had. */
export async function startEnvoy(peerPort: number, hosts: number): Promise<Running> {
  const { binary } = await installed<{ binary: string }>("bench/nginx/install-envoy.mjs", ENVOY_VERSION);
  const folder = temporaryFolder();
  const port = await closedPort();
  const file = join(folder, "envoy.json");
  writeFileSync(file, JSON.stringify(configuration(port, peerPort, hosts)));
  const args = ["-c", file, "--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];
  return Running.start(folder, port, binary, args);
}
