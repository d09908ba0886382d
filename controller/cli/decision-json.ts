import type { Decision } from "../../core-wasm/binding/decision.js";

/** A decision as `njet-kic match --json` prints it; what does not apply is left out. */
export interface DecisionJson {
  action: Decision["action"];
  status?: number;
  upstream?: string;
  peer?: string;
  target?: string;
  location?: string;
  body?: string;
  resource?: string;
  host?: string;
  path?: string;
}

/** Bytes of a request or an answer as text: UTF-8, with U+FFFD for what is not. */
function text(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** `ip:port`, with brackets around IPv6. */
export function peerText(peer: { address: string; port: number }): string {
  return `${peer.address.includes(":") ? `[${peer.address}]` : peer.address}:${peer.port}`;
}

export function decisionJson(decision: Decision): DecisionJson {
  const { origin } = decision;
  const from = origin ? { resource: origin.resource, host: origin.host, path: origin.path } : {};
  switch (decision.action) {
    case "proxy":
      return {
        action: "proxy",
        upstream: decision.upstream,
        peer: peerText(decision.peer),
        target: text(decision.target),
        ...from,
      };
    case "redirect":
      return { action: "redirect", status: decision.status, location: text(decision.location), ...from };
    case "return":
      return {
        action: "return",
        status: decision.status,
        ...(decision.body === undefined ? {} : { body: text(decision.body) }),
        ...(decision.upstream ? { upstream: decision.upstream } : {}),
        ...from,
      };
  }
}
