/** What travels from the control server to the privileged agent and the workers, and what they answer. */

export interface ServerKey {
  addr_port: string;
  server_name: string;
}

export interface LocationEntry {
  location_rule?: string;
  location_name: string;
  location_body?: string;
  proxy_pass?: string;
  locations?: LocationEntry[];
}

export interface MapEntry {
  keyFrom: string;
  keyTo: string;
  values: { valueFrom: string; valueTo: string }[];
  type?: string;
  isVolatile?: boolean;
  hostnames?: boolean;
}

export interface CertificateInfo {
  cert_type: string;
  certificate: string;
  certificateKey: string;
}

export type Message =
  | ({ about: "location"; type: "add"; locations: LocationEntry[] } & ServerKey)
  | ({ about: "location"; type: "del"; location_rule?: string; location_name: string } & ServerKey)
  | ({ about: "server"; type: "add"; listen_option?: string; server_body?: string } & ServerKey)
  | ({ about: "server"; type: "del" } & ServerKey)
  | { about: "upstream"; type: "add"; upstream_name: string; upstream_body?: string }
  | { about: "upstream"; type: "del"; upstream_name: string }
  | { about: "certificate"; type: "add" | "del"; listens: string[]; serverNames: string[]; cert_info: CertificateInfo }
  | { about: "config"; module: string; document: Record<string, unknown> };

/** `njt_rpc_result_t`. */
export interface Result {
  code: number;
  msg: string;
  data?: string[];
}

export const DONE: Result = { code: 0, msg: "success." };
export const CONF_ERROR = "update dyn conf error.";

export function refused(code: number, msg: string, data?: string[]): Result {
  return { code, msg, ...(data && { data }) };
}

/** In the order of fields that OpenNJet writes. */
export function resultText({ code, msg, data }: Result): string {
  return JSON.stringify(data ? { data, code, msg } : { code, msg });
}
