/** Short forms of rules, peers and requests for tests of the core. */
import type { RequestInput } from "../../core-wasm/binding/decision.js";
import type {
  Condition,
  HostPattern,
  HostRules,
  Outcome,
  PathRule,
  PeerSetSource,
  Route,
  Template,
  ValueSource,
} from "../../core-wasm/binding/source.js";

export const EXAMPLE: HostPattern = { kind: "exact", host: "example.com" };

export function hostRules(routes: Route[], rest: Partial<HostRules> = {}): HostRules {
  return { pattern: EXAMPLE, guards: [], routes, ...rest };
}

/** A route that owns itself: label and resource say the same as the path. */
export function route(path: PathRule, outcome?: Outcome, rest: Partial<Route> = {}): Route {
  const label = path.kind === "regex" ? path.pattern : path.path;
  return { path, label, resource: `VirtualServer/default/${label}`, matches: [], outcome, ...rest };
}

export const exact = (path: string): PathRule => ({ kind: "exact", path });
export const segments = (path: string): PathRule => ({ kind: "segments", path });
export const prefix = (path: string, stopsRegex = false): PathRule => ({ kind: "prefix", path, stopsRegex });
export const regex = (pattern: string, rest: { ignoreCase?: boolean; anchored?: boolean } = {}): PathRule => ({
  kind: "regex",
  pattern,
  ignoreCase: false,
  anchored: false,
  ...rest,
});

/** An answer whose body tells which rule gave it. */
export function answer(...body: Template): Outcome & { kind: "return" } {
  return { kind: "return", status: 200, contentType: "text/plain", body };
}

export const header = (name: string): ValueSource => ({ kind: "header", name });
export const cookie = (name: string): ValueSource => ({ kind: "cookie", name });
export const argument = (name: string): ValueSource => ({ kind: "argument", name });

export function equals(source: ValueSource, value: string, negated = false): Condition {
  return { source, test: { kind: "equals", value }, negated };
}

export function peers(key: string, ports: number[], method: PeerSetSource["method"] = { kind: "round-robin" }) {
  return {
    key,
    display: `default/${key}:80`,
    method,
    peers: ports.map((port) => ({ address: "10.0.0.1", port, weight: 1 })),
  } satisfies PeerSetSource;
}

export interface RequestParts extends Partial<Omit<RequestInput, "header">> {
  /** By lower-case name. */
  headers?: Record<string, string>;
}

/** A request for `target` of example.com; `asked` collects the names of the headers that the core asks for. */
export function request(target: string, parts: RequestParts = {}, asked: string[] = []): RequestInput {
  const { headers = {}, ...rest } = parts;
  return {
    method: "GET",
    scheme: "http",
    host: "example.com",
    target,
    protocol: "HTTP/1.1",
    clientAddress: "192.0.2.7",
    clientPort: 40123,
    ...rest,
    header(name) {
      asked.push(name);
      return headers[name];
    },
  };
}
