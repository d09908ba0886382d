import type { Peer } from "../../core-wasm/binding/source.js";
import type { Endpoint, EndpointSliceFragment, PortRef, ServiceFragment, ServicePort } from "../resources/fragments.js";
import { compareText } from "./age.js";

/** The peers of an upstream, or why there are none. */
export interface PeersResult {
  peers: Peer[];
  problem?: "SERVICE_MISSING" | "SERVICE_EXTERNAL_NAME" | "SERVICE_PORT_MISSING";
}

/**
 * Finds the peers of a port of a service. The port of an endpoint is that of the slice port with the name of the
 * service port, whether the backend gives number or name. Each address and port counts once, however many slices hold
 * it, and the order is always the same.
 *
 * Ready endpoints take part; with publishNotReadyAddresses those that are not ready too; terminating ones do not. If
 * that leaves none, endpoints that terminate but still serve are used, as kube-proxy does (KEP-1669), so that the last
 * pod of a rollout answers until its successor is ready. With `keepDraining`, for an upstream whose clients stay with
 * their peer, those that terminate but still serve are always there, marked as draining: old sessions end where they
 * began, and the core gives them nothing else while another peer is left. An endpoint that takes part by one slice and
 * terminates by another takes part.
 */
export function findPeers(
  service: ServiceFragment | undefined,
  port: PortRef,
  slices: Iterable<EndpointSliceFragment>,
  keepDraining: boolean,
): PeersResult {
  if (service === undefined) return { peers: [], problem: "SERVICE_MISSING" };
  const servicePort = findServicePort(service, port);
  if (typeof servicePort === "string") return { peers: [], problem: servicePort };
  const usable = new Map<string, Peer>();
  const leaving = new Map<string, Peer>();
  for (const slice of slices) {
    const slicePort = slice.ports.find((entry) => entry.name === servicePort.name);
    if (slicePort === undefined) continue;
    for (const endpoint of slice.endpoints) {
      const peer: Peer = { address: endpoint.address, port: slicePort.port, weight: 1 };
      const key = `${peer.address} ${peer.port}`;
      if (isUsable(endpoint, service)) usable.set(key, peer);
      else if (endpoint.terminating && endpoint.serving)
        leaving.set(key, keepDraining ? { ...peer, draining: true } : peer);
    }
  }
  const chosen = keepDraining ? new Map([...leaving, ...usable]) : usable.size > 0 ? usable : leaving;
  return { peers: [...chosen.values()].sort((a, b) => compareText(a.address, b.address) || a.port - b.port) };
}

/** The port of the service that a backend names, or why there is none that could have endpoints. */
export function findServicePort(
  service: ServiceFragment | undefined,
  port: PortRef,
): ServicePort | NonNullable<PeersResult["problem"]> {
  if (service === undefined) return "SERVICE_MISSING";
  if (service.external) return "SERVICE_EXTERNAL_NAME";
  const candidates = service.ports.filter((entry) => (typeof port === "number" ? entry.port : entry.name) === port);
  return candidates.find((entry) => entry.protocol === "TCP") ?? candidates[0] ?? "SERVICE_PORT_MISSING";
}

function isUsable(endpoint: Endpoint, service: ServiceFragment): boolean {
  return (endpoint.ready || service.publishNotReady) && !endpoint.terminating;
}
