import { afterAll, beforeAll, describe, it } from "vitest";
import { bundleOf } from "../../controller/model/bundle.js";
import { modelOf, strictVectors, type Vector } from "../model/model-support.js";
import { holdsOverHttp } from "../proxy/vector-requests.js";
import { makeCertificate } from "../support/certificates.js";
import { sharedCore } from "../support/core.js";
import { closedPort, httpPeer, type Peer } from "../support/peers.js";
import { noEnvoy } from "./installation.js";
import { type Bootstrap, managerOf, RunningEnvoy } from "./running-envoy.js";

const SECRET = "secret-of-the-vectors";

describe.skipIf(noEnvoy)("over Envoy, the strict vectors", () => {
  let envoy: RunningEnvoy;
  let standIn: Peer;
  let https: number;

  beforeAll(async () => {
    standIn = await httpPeer((request, response) => {
      const { method, url, headers } = request;
      request.resume();
      response.end(JSON.stringify({ peer: headers["x-destination"], method, target: url }));
    });
    https = await closedPort();
    const [first] = strictVectors();
    envoy = await RunningEnvoy.start({
      bundle: bundle(first),
      options: [`decide=${SECRET}`],
      edit: (bootstrap) => {
        believeClients(bootstrap);
        standFor(bootstrap, standIn.port);
        addTls(bootstrap, https);
      },
    });
  });
  afterAll(async () => {
    await envoy?.close();
    await standIn?.close();
  });

  for (const vector of strictVectors()) {
    it(`of ${vector.name} get the answers that they ask for`, async () => {
      const bytes = bundle(vector);
      envoy.write(bytes);
      await envoy.serves(bytes, SECRET);
      await holdsOverHttp(vector, { http: envoy.port, https });
    });
  }
});

function bundle({ objects }: Vector): Uint8Array {
  return bundleOf(modelOf(objects).snapshot(), sharedCore).bytes;
}

/** Takes the client's address from X-Forwarded-For, as behind a trusted proxy. */
function believeClients({ static_resources: { listeners } }: Bootstrap): void {
  const manager = managerOf(listeners[0]);
  manager.use_remote_address = false;
  // The connections of this test end with each answer; Envoy would wait for a second until they do.
  manager.delayed_close_timeout = "0s";
}

/** One server stands for the peers of all clusters; it is told which peer the core has picked. */
function standFor({ static_resources }: Bootstrap, port: number): void {
  const [virtualHost] = managerOf(static_resources.listeners[0]).route_config.virtual_hosts;
  const value = "%FILTER_STATE(envoy.network.transport_socket.original_dst_address:PLAIN)%";
  virtualHost.request_headers_to_add = [{ header: { key: "x-destination", value } }];
  const endpoint = { address: { socket_address: { address: "127.0.0.1", port_value: port } } };
  static_resources.clusters = static_resources.clusters.map(({ name }) => ({
    name,
    type: "STATIC",
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint }] }] },
  }));
}

/** The same listener once more, over TLS. */
function addTls({ static_resources: { listeners } }: Bootstrap, port: number): void {
  const listener = structuredClone(listeners[0]);
  listener.name = "https";
  listener.address.socket_address.port_value = port;
  const { chain, key } = makeCertificate("envoy", "envoy.example.com");
  const certificate = { certificate_chain: { inline_string: chain }, private_key: { inline_string: key } };
  listener.filter_chains[0].transport_socket = {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
      common_tls_context: { tls_certificates: [certificate] },
    },
  };
  listeners.push(listener);
}
