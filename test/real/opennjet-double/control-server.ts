import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { configOf } from "./apply-config.js";
import { BodyRefused, LOCATION, readChange, SERVER, UPSTREAM } from "./change-requests.js";
import type { Faults } from "./faults.js";
import type { HealthChecks } from "./health-checks.js";
import { type Message, refused, resultText } from "./messages.js";
import { NO_HANDLER, type Plane } from "./plane.js";
import { MemberError } from "./shared-members.js";

/** A request as it came, for tests that say which calls are made. */
export interface ControlRequest {
  method: string;
  path: string;
  body: unknown;
}

export interface ControlServerParts {
  plane: Plane;
  faults: Faults;
  checks: HealthChecks;
  keyValues: Map<string, string>;
  /** Prometheus text. */
  metrics: () => string;
  /** `client_max_body_size`. */
  mostBody: number;
  /** Called after a change that may have opened or closed addresses. */
  listen: () => Promise<void>;
}

interface Reply {
  status: number;
  body: string;
  type?: string;
}

const TIMEOUT: Reply = { status: 500, body: '{\n  "code": 500,\n  "msg": "rpc timeout"\n}' };
const NOT_FOUND: Reply = { status: 404, body: '{"code":404,"msg":"not found error"}' };
const SERVER_ERROR: Reply = { status: 500, body: '{"code":500,"msg":"server error"}' };
const BAD_BODY: Reply = {
  status: 400,
  body: '{"code":400,"msg":"Request body should be a valid JSON object and less than 5MB"}',
};
const UPSTREAM_HREF = "https://njet.org/en/docs/http/njt_http_api_module.html";
const TIMEOUT_OF_MEMBERS: Reply = memberError(new MemberError(404, "UnknownError", "unknown error"));

/** The control server: HTTP on loopback, without authentication. */
export class DoubleControlServer {
  readonly requests: ControlRequest[] = [];
  private readonly server: Server;

  constructor(private readonly parts: ControlServerParts) {
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  async open(port = 0): Promise<number> {
    await new Promise<void>((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    return (this.server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of request) {
      size += part.length;
      if (size <= this.parts.mostBody) parts.push(part);
    }
    const method = request.method ?? "";
    const url = new URL(request.url ?? "/", "http://control");
    const text = Buffer.concat(parts).toString();
    if (method !== "GET") this.requests.push({ method, path: url.pathname, body: parsed(text) });
    const reply = size > this.parts.mostBody ? tooLarge() : this.reply(method, url, text);
    await this.parts.listen();
    const { faults } = this.parts;
    if (faults.brokenConnections > 0 && method !== "GET") {
      faults.brokenConnections--;
      response.destroy();
      return;
    }
    const {
      status,
      body,
      type = "application/json",
    } = faults.answer === undefined ? reply : { status: 200, body: faults.answer };
    response.writeHead(status, {
      Server: "njet/4.0.1.0",
      "Content-Type": type,
      "Content-Length": Buffer.byteLength(body),
    });
    response.end(body);
  }

  private reply(method: string, url: URL, text: string): Reply {
    if (url.pathname === "/metrics") return { status: 200, body: this.parts.metrics(), type: "text/plain" };
    // OpenNJet decodes a path before it splits it.
    const [api, version, module, ...rest] = decodeURIComponent(url.pathname)
      .split("/")
      .filter((one) => one !== "");
    if (api !== "api" || version !== "v1") return page(404, "Not Found");
    switch (module) {
      case "config":
        return this.config(method, rest, text);
      case "dyn_loc":
        return this.dynamic(LOCATION, method, text);
      case "dyn_srv":
        return this.dynamic(SERVER, method, text);
      case "dyn_ups":
        return this.dynamic(UPSTREAM, method, text);
      case "ssl":
        return this.certificates(method, text);
      case "hc":
        return this.parts.checks.answer(method, rest, text);
      case "kv":
        return this.keyValue(method, url, text);
      case "upstream_api":
        return this.upstreams(method, rest, text);
      default:
        return NOT_FOUND;
    }
  }

  private dynamic(kind: typeof LOCATION, method: string, text: string): Reply {
    if (method !== "POST" && method !== "PUT") return NOT_FOUND;
    try {
      return this.change(readChange(kind, method, text));
    } catch (error) {
      if (!(error instanceof BodyRefused)) throw error;
      return { status: 400, body: resultText(refused(4, error.message)) };
    }
  }

  private change(message: Message): Reply {
    const result = this.parts.plane.change(message);
    return result === "timeout" ? TIMEOUT : { status: 200, body: resultText(result) };
  }

  private config(method: string, [module]: string[], text: string): Reply {
    const { plane } = this.parts;
    const { modules } = plane.options;
    if (module === undefined) {
      return method === "GET" ? { status: 200, body: JSON.stringify(modules) } : NOT_FOUND;
    }
    if (method === "GET") {
      const document = modules.includes(module) ? this.document(module) : undefined;
      return { status: 200, body: document === undefined ? resultText(NO_HANDLER) : JSON.stringify(document) };
    }
    if (method !== "PUT") return NOT_FOUND;
    if (text.length < 2) return BAD_BODY;
    const document = parsed(text);
    if (typeof document !== "object" || document === null) {
      return { status: 200, body: resultText(refused(3, "invalid json format.")) };
    }
    return this.change({ about: "config", module, document: document as Record<string, unknown> });
  }

  private document(module: string): unknown {
    const { agent } = this.parts.plane;
    if (module !== "dyn_upstream") return configOf(agent, module);
    return [...agent.upstreams].map(([name, { isStatic }]) => ({
      name,
      balance: "round_robin",
      zone: { name, size: 131_072 },
      is_static: isStatic,
    }));
  }

  private certificates(method: string, text: string): Reply {
    if (method === "GET") return { status: 200, body: JSON.stringify({ servers: this.certified() }) };
    const body = parsed(text) as Record<string, unknown> | undefined;
    if (method !== "PUT") return SERVER_ERROR;
    if (
      typeof body !== "object" ||
      body === null ||
      !Array.isArray(body.listens) ||
      typeof body.cert_info !== "object"
    ) {
      return { status: 200, body: resultText(refused(3, "invalid json format.")) };
    }
    const type = body.type === "del" ? "del" : "add";
    return this.change({ ...body, about: "certificate", type } as Message);
  }

  private certified(): object[] {
    return this.parts.plane.agent.servers.map(({ listens, names, tls }) => ({
      listens,
      serverNames: names,
      ...(tls && { certificates: [tls] }),
    }));
  }

  private keyValue(method: string, { search }: URL, text: string): Reply {
    const { keyValues } = this.parts;
    const type = "text/plain";
    if (method === "POST") {
      const { key, value } = (parsed(text) ?? {}) as { key?: unknown; value?: unknown };
      if (typeof key !== "string" || typeof value !== "string") return page(400, "Bad Request");
      keyValues.set(key, value);
      return { status: 200, body: "", type };
    }
    // Arguments are not decoded.
    const key = /[?&]key=([^&]*)/.exec(search)?.[1] ?? "";
    const value = keyValues.get(key);
    if (value === undefined) return { status: 404, body: "key is not existed in db\n", type };
    if (method !== "DELETE") return { status: 200, body: value, type };
    keyValues.delete(key);
    return { status: 200, body: "key is deleted from db\n", type };
  }

  private upstreams(method: string, segments: string[], text: string): Reply {
    const { faults, plane } = this.parts;
    if (faults.timeouts > 0) {
      faults.timeouts--;
      return TIMEOUT_OF_MEMBERS;
    }
    try {
      return this.upstream(method, segments, text, plane.members);
    } catch (error) {
      if (error instanceof MemberError) return memberError(error);
      throw error;
    }
  }

  private upstream(method: string, segments: string[], text: string, members: Plane["members"]): Reply {
    const [http, upstreams, name, servers, id] = segments;
    if (http !== "http" || upstreams !== "upstreams") throw new MemberError(404, "PathNotFound", "path not found");
    if (name === undefined) return json(members.names().map((one) => members.state(one)));
    if (servers === undefined && method === "GET") return json(members.state(name));
    if (servers !== "servers") throw new MemberError(404, "PathNotFound", "path not found");
    const number = Number(id);
    if (method === "GET") return json(id === undefined ? members.members(name) : members.member(name, number));
    if (method === "POST" && id === undefined) return json(members.add(name, parsed(text)), 201);
    if (id === undefined) throw new MemberError(405, "MethodNotSupported", "method not supported");
    if (method === "PATCH") return json(members.change(name, number, parsed(text)));
    if (method !== "DELETE") throw new MemberError(405, "MethodNotSupported", "method not supported");
    members.remove(name, number);
    return json(members.state(name));
  }
}

function json(value: unknown, status = 200): Reply {
  return { status, body: JSON.stringify(value) };
}

function memberError({ status, code, message }: MemberError): Reply {
  return json({ error: { status, text: message, code }, request_id: "N/A", href: UPSTREAM_HREF }, status);
}

function tooLarge(): Reply {
  return page(413, "Request Entity Too Large");
}

function page(status: number, reason: string): Reply {
  const title = `${status} ${reason}`;
  const head = `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n`;
  return { status, body: `${head}<hr><center>njet/4.0.1.0</center>\r\n</body>\r\n</html>\r\n`, type: "text/html" };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
