/** Tests that no text of an object means anything but its bytes to OpenNJet. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { UpstreamTransport } from "../../controller/model/types.js";
import type { ApplyFailure, Proxy as DrivenProxy } from "../../controller/proxies/proxy.js";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import type { Action, HeaderChange, HostRules, Route, Template } from "../../core-wasm/binding/source.js";
import { runCleanups } from "../support/harness.js";
import { type Answer, ask } from "../support/http-client.js";
import { httpPeer, type Peer } from "../support/peers.js";
import { actionHost, type Balancing, fullPlan, keyOf, proxyHost, upstreamStep } from "../support/plans.js";
import {
  answer,
  argument,
  cookie,
  equals,
  exact,
  header,
  hostRules,
  prefix,
  regex,
  route,
  segments,
} from "../support/rules.js";

/** Each tries to end the word, the directive, the location, the condition or the document that it stands in. */
const HOSTILE = [
  "; return 200 pwned;",
  '"; return 200 pwned; #',
  "'; return 200 pwned; #",
  "} location /pwned { return 200 pwned; } #",
  '"; } location = /pwned { return 200 pwned; } location /x { return 200 "',
  "{",
  "}",
  '"',
  "'",
  "\\",
  '\\"',
  "a\\",
  "#",
  "a #b",
  "$",
  "$pid",
  "${pid}",
  "$1",
  "${",
  "a\nreturn 200 pwned;",
  "a\r\nX-Pwned: 1",
  "\0",
  "a\0b",
  "\x1b[31m",
  "\x7f",
  "a && $uri = /pwned",
  "a || $uri = /pwned",
  ") || ($uri = /pwned",
  "||",
  "(",
  ")",
  "`id`",
  "%0a",
  "%7B%7D",
  "ü 漢字 🙂",
  '{"a":"b"}',
  "x".repeat(5000),
];

/** An OpenNJet with the carrier on it, which begins with nothing. */
export interface BreakOutServer {
  carrier: DrivenProxy;
  http: number;
}

/** What a hostile text is put in, and what shows that it is there as it is. */
interface Field {
  name: string;
  rules(text: string): Pick<HostRules, "routes"> & Partial<HostRules>;
  upstream?: (text: string) => { transport?: Partial<UpstreamTransport>; balancing?: Balancing };
  /** Throws where the text means anything else; `send` asks the host of the text. Not for texts that no request can have. */
  holds?(send: Send, text: string): Promise<void>;
}

type Send = (path: string, headers?: Record<string, string>) => Promise<Answer>;

const PEER = "peer";
const OTHER = "other.example.com";
const PROXY: Action = { kind: "proxy", upstream: keyOf(PEER) };
const RESOURCE = "VirtualServer/default/shop";
const FINE = answer("fine");

const utf8 = (latin1 = "") => Buffer.from(latin1, "latin1").toString("utf8");
const all = (action: Action): Pick<HostRules, "routes"> => ({ routes: [route(prefix("/"), action)] });
const changing = (...headers: HeaderChange[]) => all({ ...PROXY, headers } as Action);
const only = (path: Route["path"], rest: Partial<Route> = {}) => ({
  routes: [route(path, FINE, { resource: RESOURCE, ...rest })],
});
const when = (condition: Parameters<typeof equals>[0], text: string) => ({
  routes: [route(prefix("/"), undefined, { matches: [{ conditions: [equals(condition, text)], outcome: FINE }] })],
});
/** Bytes of a path as a client sends them. */
const encoded = (text: string) => encodeURIComponent(text);
const isHeaderText = (text: string) => /^[\x20-\x7e]+$/.test(text);

async function pathHolds(send: Send, text: string): Promise<void> {
  // NGINX and the core take no request with such a path.
  if (text.includes("\0")) return;
  expect((await send(`/${encoded(text)}`)).body).toBe("fine");
  expect((await send("/elsewhere")).status).toBe(404);
}

function told(list: string): string {
  return Buffer.from(list, "utf8").toString("latin1");
}

/** As the core writes it (core-wasm/assembly/request/byte-classes.ts). */
function escaped(text: string, bars: RegExp): string {
  return told(text).replaceAll(bars, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}

const FIELDS: Field[] = [
  {
    name: "the body of an answer",
    rules: (text) => all(answer(text)),
    holds: async (send, text) => expect(utf8((await send("/")).body)).toBe(text),
  },
  {
    name: "the content type of an answer",
    rules: (text) => all({ ...FINE, contentType: text }),
    holds: async (send, text) => expect((await send("/")).headers["content-type"]).toBe(told(text)),
  },
  {
    name: "the target of a redirect",
    rules: (text) => all({ kind: "redirect", status: 302, location: ["https://a.example/", text] }),
    holds: async (send, text) =>
      expect((await send("/")).headers.location).toBe(escaped(`https://a.example/${text}`, /[^!#-;=?-[\]_a-z~]/g)),
  },
  {
    name: "the value of a header of the answer",
    rules: (text) => changing({ op: "add-response", name: "X-Told", value: [text], always: true }),
    holds: async (send, text) =>
      expect((await send("/")).headers["x-told"]).toBe(escaped(text, /[\x00-\x08\x0a-\x1f\x7f]/g)),
  },
  {
    name: "the name of a header of the answer",
    rules: (text) => changing({ op: "add-response", name: text, value: ["told"], always: true }),
    holds: async (send, text) => expect((await send("/")).headers[text.toLowerCase()]).toBe("told"),
  },
  {
    name: "the name of a header that is hidden",
    rules: (text) => changing({ op: "hide-response", name: text }),
    holds: async (send) => expect((await send("/")).status).toBe(200),
  },
  {
    name: "the value of a header for the peer",
    rules: (text) => changing({ op: "set-request", name: "X-Told", value: [text] }),
    holds: async (send, text) =>
      expect(JSON.parse(utf8((await send("/")).body)).headers["x-told"]).toBe(
        escaped(text, /[\x00-\x08\x0a-\x1f\x7f]/g),
      ),
  },
  {
    name: "the name of a header for the peer",
    rules: (text) => changing({ op: "set-request", name: text, value: ["told"] }),
    holds: async (send, text) =>
      expect(JSON.parse(utf8((await send("/")).body)).headers[text.toLowerCase()]).toBe("told"),
  },
  { name: "an exact path", rules: (text) => only(exact(`/${text}`)), holds: pathHolds },
  { name: "segments of a path", rules: (text) => only(segments(`/${text}`)), holds: pathHolds },
  { name: "the beginning of a path", rules: (text) => only(prefix(`/${text}`)), holds: pathHolds },
  {
    name: "literal text of a pattern for paths",
    rules: (text) => only(regex(`^/${text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`)),
    holds: pathHolds,
  },
  { name: "a pattern for paths", rules: (text) => only(regex(text)) },
  {
    name: "the value of a header in a condition",
    rules: (text) => when(header("x-asked"), text),
    async holds(send, text) {
      expect((await send("/", { "X-Asked": "else" })).status).toBe(404);
      if (isHeaderText(text)) expect((await send("/", { "X-Asked": text })).body).toBe("fine");
    },
  },
  {
    name: "the value of a cookie in a condition",
    rules: (text) => when(cookie("asked"), text),
    async holds(send, text) {
      expect((await send("/", { Cookie: "asked=else" })).status).toBe(404);
      if (/^[\x21-\x7e]+$/.test(text) && !text.includes(";"))
        expect((await send("/", { Cookie: `asked=${text}` })).body).toBe("fine");
    },
  },
  {
    name: "the value of an argument in a condition",
    rules: (text) => when(argument("asked"), text),
    async holds(send, text) {
      expect((await send("/?asked=else")).status).toBe(404);
      if (/^[\x21-\x7e]+$/.test(text) && !/[&#]/.test(text)) expect((await send(`/?asked=${text}`)).body).toBe("fine");
    },
  },
  { name: "the name of a header in a condition", rules: (text) => when(header(text), "yes") },
  { name: "the name of a cookie in a condition", rules: (text) => when(cookie(text), "yes") },
  { name: "the name of an argument in a condition", rules: (text) => when(argument(text), "yes") },
  {
    name: "a pattern in a condition",
    rules: (text) => ({
      routes: [
        route(prefix("/"), undefined, {
          matches: [
            {
              conditions: [
                {
                  source: header("x-asked"),
                  test: { kind: "regex", pattern: text, ignoreCase: false },
                  negated: false,
                },
              ],
              outcome: FINE,
            },
          ],
        }),
      ],
    }),
  },
  {
    name: "a rewritten beginning of a path",
    rules: (text) => all({ ...PROXY, rewrite: { kind: "prefix", text: `/${text}` } } as Action),
    holds: async (send, text) => expect(JSON.parse(utf8((await send("/")).body)).url).toBe(`/${text}`),
  },
  {
    name: "a rewritten path",
    rules: (text) => all({ ...PROXY, rewrite: { kind: "path", template: [`/${text}`] } } as Action),
    holds: async (send, text) => expect(JSON.parse(utf8((await send("/")).body)).url).toBe(`/${text}`),
  },
  {
    name: "the name of an object and of a service",
    rules: (text) => all({ kind: "proxy", upstream: keyOf(text) }),
    upstream: () => ({}),
    holds: async (send) => expect((await send("/")).status).toBe(200),
  },
  {
    name: "the key of a hash",
    rules: (text) => all({ kind: "proxy", upstream: keyOf(text) }),
    upstream: (text) => ({ balancing: { method: { kind: "hash", key: [text], bounded: false } as never } }),
    holds: async (send) => expect((await send("/")).status).toBe(200),
  },
];

/** Numbers that stand in no configuration text. */
const NO_NUMBERS = [Number.NaN, Number.POSITIVE_INFINITY, -1, 1.5, 1e21];

export function breakOutTests(start: () => Promise<BreakOutServer>): void {
  let server: BreakOutServer;
  let peer: Peer;

  beforeAll(async () => {
    peer = await httpPeer((request, response) => {
      response.end(JSON.stringify({ url: request.url, headers: request.headers }));
    });
    server = await start();
    await server.carrier.complete?.();
  }, 120_000);
  afterAll(async () => {
    await runCleanups();
    await peer?.close();
  });

  const common = () => [
    upstreamStep(PEER, [peer.port]),
    actionHost(OTHER, answer("other")),
    proxyHost("peer.example.com", PEER),
  ];

  async function applied(...steps: PlanStep[]): Promise<ApplyFailure[]> {
    return (await server.carrier.apply(fullPlan(...common(), ...steps))).failures;
  }

  /** Nothing but what was asked for is there. */
  async function nothingElse(hosts: readonly string[]): Promise<void> {
    for (const host of [...hosts, OTHER, "nobody.example.com"]) {
      for (const path of ["/pwned", "/x"]) {
        const { body, headers } = await ask(server.http, { host, path });
        expect(body, `${host}${path}`).not.toMatch(/^pwned/);
        expect(headers["x-pwned"], `${host}${path}`).toBeUndefined();
      }
    }
    expect((await ask(server.http, { host: OTHER })).body).toBe("other");
    expect((await ask(server.http, { host: "peer.example.com" })).status).toBe(200);
    expect((await ask(server.http, { host: "nobody.example.com" })).status).toBe(404);
  }

  for (const { name, rules, upstream, holds } of FIELDS) {
    it(`Whatever text is ${name}, it means its bytes or is refused on its object`, async () => {
      const hosts = HOSTILE.map((text, i) => ({ text, host: `h${i}.example.com` }));
      const steps = hosts.flatMap(({ text, host }): PlanStep[] => {
        const made = upstream?.(text);
        const set: PlanStep = {
          step: "set-host",
          rules: hostRules([], { pattern: { kind: "exact", host }, ...rules(text) }),
        };
        if (made === undefined) return [set];
        return [upstreamStep(text, [peer.port], made.transport, made.balancing), set];
      });
      const failures = await applied(...steps);
      for (const { message } of failures) expect(message).not.toMatch(/[\x00-\x1f\x7f]/);
      const refused = new Set(failures.map(({ piece }) => piece));
      expect(
        failures.every(({ code }) => code === "PROXY_UNSUPPORTED"),
        JSON.stringify(failures),
      ).toBe(true);
      let served = 0;
      for (const { text, host } of hosts) {
        if (refused.has(host) || refused.has(keyOf(text))) continue;
        served++;
        const send: Send = (path, headers) => ask(server.http, { host, path, headers });
        await holds?.(send, text).catch((error: unknown) => {
          throw new Error(`${JSON.stringify(text.slice(0, 60))}: ${error instanceof Error ? error.message : error}`);
        });
      }
      if (holds !== undefined) expect(served).toBeGreaterThan(0);
      await nothingElse(hosts.map(({ host }) => host));
    });
  }

  it("A host of hostile text answers nothing, and is refused or never asked for", async () => {
    const steps = HOSTILE.map((host) => actionHost(host, answer("pwned by its host")));
    const failures = await applied(...steps);
    for (const { message } of failures) expect(message).not.toMatch(/[\x00-\x1f\x7f]/);
    await nothingElse([]);
  });

  it("No number but a whole one becomes configuration text", async () => {
    const fields = ["connectTimeout", "readTimeout", "sendTimeout", "clientMaxBodySize", "nextUpstreamTries"] as const;
    const cases = fields.flatMap((field) => NO_NUMBERS.map((number) => ({ field, number })));
    const steps = cases.flatMap(({ field, number }, i) => [
      upstreamStep(`n${i}`, [peer.port], { [field]: number }),
      proxyHost(`n${i}.example.com`, `n${i}`),
    ]);
    const failures = await applied(...steps);
    expect(failures.map(({ piece }) => piece).sort()).toEqual(cases.map((_, i) => `n${i}.example.com`).sort());
    await nothingElse([]);
  });

  it("No value of a request ends a line of the answer, or of the request to a peer", async () => {
    const value: Template = [{ kind: "variable", name: "uri" }];
    const host = "values.example.com";
    const routes = [
      route(prefix("/redirect"), { kind: "redirect", status: 302, location: ["https://a.example", ...value] }),
      route(prefix("/type"), answer(...value)),
      route(prefix("/told"), {
        ...PROXY,
        headers: [
          { op: "add-response", name: "X-Told", value, always: true },
          { op: "set-request", name: "X-Sent", value },
        ],
      } as Action),
    ];
    const failures = await applied({
      step: "set-host",
      rules: hostRules(routes, { pattern: { kind: "exact", host } }),
    });
    for (const path of failures.length > 0 ? [] : ["/redirect", "/type", "/told"]) {
      for (const line of ["%0d%0aX-Pwned:%201", "%0aX-Pwned:%201", "%0d%0a%0d%0apwned"]) {
        const found = await ask(server.http, { host, path: `${path}/${line}` });
        expect(found.headers["x-pwned"], path).toBeUndefined();
        if (path === "/told") expect(JSON.parse(found.body).headers["x-pwned"]).toBeUndefined();
        if (path === "/redirect") expect(found.body).not.toMatch(/^pwned/);
      }
    }
    await nothingElse([host]);
  });
}
