/** Names and words of the filter, each as `ascii` makes it. */
import { ascii, isText } from "./text";

export const AUTHORITY = ascii(":authority");
export const PATH = ascii(":path");
export const METHOD = ascii(":method");
export const SCHEME = ascii(":scheme");
export const STATUS = ascii(":status");
/** Facts of the connection, in a question that brings its own request. */
export const SOURCE = ascii(":source");
export const PROTOCOL = ascii(":protocol");

/** What the route of the listener chooses the cluster by. */
export const CLUSTER = ascii("x-njet-cluster");
/** `ip:port` of the peer, for an ORIGINAL_DST cluster. */
export const PEER = ascii("x-njet-peer");
/** What the core hashed, for a cluster that hashes by itself. */
export const HASH = ascii("x-njet-hash");
/** Asks what would be decided. */
export const DECIDE = ascii("x-njet-decide");
/** Checksum of the bundle that an answer to that comes from. */
export const BUNDLE = ascii("x-njet-bundle");

export const HOST = ascii("host");
export const COOKIE = ascii("cookie");
export const CONTENT_TYPE = ascii("content-type");
export const LOCATION = ascii("location");
export const SET_COOKIE = ascii("set-cookie");
export const JSON_TYPE = ascii("application/json");
export const HTTPS = ascii("https");

/** Properties: names with zero bytes between them. */
export const SOURCE_ADDRESS = ascii("source\0address");
export const REQUEST_PROTOCOL = ascii("request\0protocol");
export const CODE_DETAILS = ascii("response\0code_details");
/** What Envoy says of an answer: the peer's; a peer that could not be reached, broke off or is late; no peer; both sides silent. */
export const VIA_UPSTREAM = ascii("via_upstream");
export const UPSTREAM = ascii("upstream_");
export const OVERFLOW = ascii("upstream_reset_before_response_started{overflow");
export const NO_HEALTHY_UPSTREAM = ascii("no_healthy_upstream");
export const STREAM_IDLE = ascii("stream_idle_timeout");
export const HTTP_2 = ascii("HTTP/2");
export const HTTP_3 = ascii("HTTP/3");
export const HTTP_2_0 = ascii("HTTP/2.0");
export const HTTP_3_0 = ascii("HTTP/3.0");

/** Clusters by how the peers are spoken to: bit 0 TLS, bit 1 gRPC. */
const CLUSTERS = memory.data<u32>([0, 0, 0, 0]);
store<u32>(CLUSTERS, <u32>ascii("njet_http"));
store<u32>(CLUSTERS, <u32>ascii("njet_https"), 4);
store<u32>(CLUSTERS, <u32>ascii("njet_grpc"), 8);
store<u32>(CLUSTERS, <u32>ascii("njet_grpcs"), 12);

export function clusterOf(transport: u32): usize {
  return load<u32>(CLUSTERS + ((<usize>transport & 3) << 2));
}

/** Headers that frame a message or are about one connection; nothing that an object says changes them. */
const FRAMING = memory.data<u32>([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const FRAMING_COUNT: u32 = 13;
store<u32>(FRAMING, <u32>ascii("connection"));
store<u32>(FRAMING, <u32>ascii("keep-alive"), 4);
store<u32>(FRAMING, <u32>ascii("proxy-connection"), 8);
store<u32>(FRAMING, <u32>ascii("transfer-encoding"), 12);
store<u32>(FRAMING, <u32>ascii("upgrade"), 16);
store<u32>(FRAMING, <u32>ascii("http2-settings"), 20);
store<u32>(FRAMING, <u32>ascii("te"), 24);
store<u32>(FRAMING, <u32>ascii("proxy-authenticate"), 28);
store<u32>(FRAMING, <u32>ascii("proxy-authorization"), 32);
store<u32>(FRAMING, <u32>ascii("proxy-authentication-info"), 36);
store<u32>(FRAMING, <u32>ascii("content-length"), 40);
store<u32>(FRAMING, <u32>ascii("trailer"), 44);
store<u32>(FRAMING, <u32>ascii("expect"), 48);

/** True for a lower-case name of a header that frames a message. */
export function isFraming(name: usize, length: u32): bool {
  for (let i: u32 = 0; i < FRAMING_COUNT; i++) {
    if (isText(name, length, load<u32>(FRAMING + ((<usize>i) << 2)))) return true;
  }
  return false;
}
