import type { IncomingMessage } from "node:http";
import type { RequestInput } from "../../binding/index.js";
import { RequestView } from "./request-view.js";

/** Address of the other end of a connection; an IPv4 address that came over IPv6 is one of IPv4. */
export function peerAddress({ socket }: IncomingMessage): string {
  return (socket.remoteAddress ?? "").replace(/^::ffff:/, "");
}

/** `https` where the connection of the request is encrypted. */
export function schemeOf({ socket }: IncomingMessage): "http" | "https" {
  return "encrypted" in socket ? "https" : "http";
}

/** A request of node:http as the core wants it; headers with `_` in their names are not seen, as with NGINX. */
export function requestInput(request: IncomingMessage): RequestInput {
  return new RequestView(request, schemeOf(request), peerAddress(request), false);
}
