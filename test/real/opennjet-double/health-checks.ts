import { request } from "node:http";
import type { SharedMembers } from "./shared-members.js";

interface Check {
  document: { interval?: string; timeout?: string; port?: number; http?: { uri?: string; status?: string } };
  timer?: NodeJS.Timeout;
}

/** Answer of `/v1/hc` for its codes. */
const MESSAGES: Record<number, [status: number, message: string]> = {
  0: [200, "success"],
  1: [404, "Type not allow"],
  2: [404, "not find upstream"],
  8: [409, "The health check already configured "],
  9: [400, "The request body parse error "],
  10: [404, "The request uri not found "],
  11: [405, "The request method not allow "],
  12: [404, "Not found health check "],
};
const TYPES = ["http", "stcp", "sudp", "smysql"];
const NEEDED = ["interval", "jitter", "timeout", "passes", "fails"];

export interface ControlAnswer {
  status: number;
  body: string;
}

/** Active checks of the double: real requests to members, of the type `http`. */
export class HealthChecks {
  private readonly checks = new Map<string, Check>();

  /** `toLoopback`: where a member is really. */
  constructor(
    private readonly members: () => SharedMembers,
    private readonly toLoopback: (server: string) => { host: string; port: number },
  ) {}

  answer(method: string, segments: string[], text: string): ControlAnswer {
    if (segments.length === 0 && method === "GET") return { status: 200, body: JSON.stringify(this.names()) };
    const [type, upstream] = segments;
    if (segments.length !== 2) return coded(10);
    if (!TYPES.includes(type)) return coded(1);
    const name = `${type} ${upstream}`;
    const check = this.checks.get(name);
    switch (method) {
      case "GET":
        return check ? { status: 200, body: JSON.stringify(check.document) } : coded(12);
      case "DELETE":
        if (!check) return coded(12);
        clearInterval(check.timer);
        this.checks.delete(name);
        return coded(0);
      case "POST":
        return this.add(name, upstream, text, check !== undefined);
      default:
        return coded(11);
    }
  }

  close(): void {
    for (const { timer } of this.checks.values()) clearInterval(timer);
  }

  private names(): { hc_type: string; upstream_name: string }[] {
    return [...this.checks.keys()].map((name) => {
      const [hc_type, upstream_name] = name.split(" ");
      return { hc_type, upstream_name };
    });
  }

  private add(name: string, upstream: string, text: string, isThere: boolean): ControlAnswer {
    if (!this.members().has(upstream)) return coded(2);
    if (isThere) return coded(8);
    let document: Check["document"] & Record<string, unknown>;
    try {
      document = JSON.parse(text);
      if (!NEEDED.every((key) => document[key] !== undefined)) return coded(9);
    } catch {
      return coded(9);
    }
    const check: Check = { document };
    this.checks.set(name, check);
    const probe = () => this.probe(upstream, check);
    probe();
    check.timer = setInterval(probe, milliseconds(document.interval ?? "5s"));
    check.timer.unref();
    return coded(0);
  }

  private probe(upstream: string, { document }: Check): void {
    if (!this.members().has(upstream)) return;
    for (const { server } of this.members().members(upstream)) {
      const { host, port } = this.toLoopback(server);
      const { uri = "/", status = "200" } = document.http ?? {};
      const timeout = milliseconds(document.timeout ?? "5s");
      const found = (passed: boolean) => this.members().checked(upstream, server, passed);
      const sent = request({ host, port, path: uri, agent: false, timeout }, (response) => {
        response.resume();
        found(String(response.statusCode) === status);
      });
      sent.on("timeout", () => sent.destroy());
      sent.on("error", () => found(false));
      sent.end();
    }
  }
}

function coded(code: number): ControlAnswer {
  const [status, message] = MESSAGES[code];
  return { status, body: `{\n  "code": ${code},\n   "msg": "${message}"\n }` };
}

function milliseconds(duration: string): number {
  const [, count, unit] = /^(\d+)(ms|s|m)$/.exec(duration) ?? ["", "5", "s"];
  return Number(count) * { ms: 1, s: 1000, m: 60_000 }[unit as "ms" | "s" | "m"];
}
