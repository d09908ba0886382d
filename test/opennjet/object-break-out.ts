/**
 * Objects whose texts try to get out of where they are pasted: into a condition, a body of directives, a name. Each is refused on
 * its object, or means what the core takes it for; nothing else comes of it.
 */
import { expect, it } from "vitest";
import type { RoutingModel } from "../../controller/model/routing-model.js";
import type { LocationsCarrier } from "../../controller/proxies/opennjet/locations/locations-carrier.js";
import type { Decision } from "../../core-wasm/binding/decision.js";
import type { RouteTable } from "../../core-wasm/binding/route-table.js";
import { patternText } from "../../core-wasm/binding/source.js";
import { service } from "../cli/objects.js";
import { makeRoutingTable } from "../support/core.js";
import { closing } from "../support/harness.js";
import { type Answer, ask } from "../support/http-client.js";
import { httpPeer } from "../support/peers.js";
import { request } from "../support/rules.js";
import { type Driven, drivenByObjects } from "./locations-changing.js";

const HOSTILE = "hostile.example.com";
const SAFE = "safe.example.com";

/** What each would bring about if it got out. */
const BREAK_OUTS = [
  "x; } location /pwned { return 200 pwned; } location /y { return 200 z",
  '"; } location /pwned { return 200 pwned; } location /y { set $x "',
  "'; } location /pwned { return 200 pwned; } location /y { set $x '",
  '\\"; return 200 pwned; #',
  "\nreturn 200 pwned;\n",
  "\r\nX-Pwned: 1\r\n\r\npwned",
  ")) || ($uri ~ pwned) || ((1 = 1",
  "' || '1' = '1",
  '" || "1" = "1',
  "*/return 200 pwned;/*",
];
/** What means something to a reader of configurations, expressions or patterns. */
const SYNTAX = [
  ..."\\\"'$#{};`|&!=~*()[]?+.%<>, \t\0é",
  "$host",
  "${host}",
  "$1",
  "\\1",
  "${",
  "\\",
  "\\n",
  ".*",
  "(?i)",
  "\\Q",
  "%0a",
  "日本",
  "$pid",
];
const TEXTS = [...BREAK_OUTS, ...SYNTAX, "a".repeat(5000)];

type Fields = Record<string, unknown>;
/** `sample`: a text that means nothing but itself, and is served. */
type Place = [name: string, object: (text: string) => Fields, sample?: string];

function virtualServer(spec: Fields): Fields {
  const upstreams = [{ name: "app", service: "one", port: 80 }];
  const whole = { ingressClassName: "njet", host: HOSTILE, upstreams, ...spec };
  return { apiVersion: "k8s.njet.org/v1", kind: "VirtualServer", metadata: { name: "hostile" }, spec: whole };
}

const proxied = { proxy: { upstream: "app" } };
const routed = (path: string, action: Fields = proxied) => virtualServer({ routes: [{ path, action }] });
const acting = (action: Fields) => routed("/", action);
const proxying = (rest: Fields) => acting({ proxy: { upstream: "app", ...rest } });
const upstream = (rest: Fields) =>
  virtualServer({
    upstreams: [{ name: "app", service: "one", port: 80, ...rest }],
    routes: [{ path: "/", action: proxied }],
  });

function conditional(condition: Fields): Fields {
  const held = { return: { body: "held" } };
  return virtualServer({
    routes: [{ path: "/", matches: [{ conditions: [condition], action: held }], action: proxied }],
  });
}

function ingress(annotations: Record<string, string>, path = "/", host = HOSTILE, pathType = "Prefix"): Fields {
  const backend = { service: { name: "one", port: { number: 80 } } };
  const spec = { ingressClassName: "njet", rules: [{ host, http: { paths: [{ path, pathType, backend }] } }] };
  return { apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "hostile", annotations }, spec };
}

const annotated =
  (name: string, rest: Record<string, string> = {}, path = "/") =>
  (text: string) =>
    ingress({ [`nginx.ingress.kubernetes.io/${name}`]: text, ...rest }, path);
const REGEX = { "nginx.ingress.kubernetes.io/use-regex": "true" };

const PLACES: Place[] = [
  [
    "the host of a VirtualServer",
    (text) => virtualServer({ host: text, routes: [{ path: "/", action: proxied }] }),
    HOSTILE,
  ],
  ["a prefix path", (text) => routed(`/${text}`)],
  ["an exact path", (text) => routed(`=/${text}`)],
  ["a pattern", (text) => routed(`~ ^/${text}`)],
  ["a pattern without case", (text) => routed(`~* ^/${text}`)],
  ["the name of a header in a condition", (text) => conditional({ header: text, value: "1" })],
  ["the value of a header in a condition", (text) => conditional({ header: "x-h", value: text })],
  ["the name of a cookie in a condition", (text) => conditional({ cookie: text, value: "1" })],
  ["the value of a cookie in a condition", (text) => conditional({ cookie: "c", value: text })],
  ["the name of an argument in a condition", (text) => conditional({ argument: text, value: "1" })],
  ["the value of an argument in a condition", (text) => conditional({ argument: "a", value: text })],
  ["a pattern in a condition", (text) => conditional({ header: "x-h", value: `~^${text}$` })],
  [
    "the name of a variable in a condition",
    (text) => conditional({ variable: `$${text}`, value: "1" }),
    "request_method",
  ],
  ["the value of a variable in a condition", (text) => conditional({ variable: "$request_uri", value: text })],
  ["the body of an answer", (text) => acting({ return: { body: text } })],
  ["the type of an answer", (text) => acting({ return: { body: "1", type: text } }), "text/html"],
  ["the address of a redirect", (text) => acting({ redirect: { url: `http://x.example.com/${text}` } })],
  ["the path that a prefix is rewritten to", (text) => proxying({ rewritePath: `/${text}` })],
  [
    "the name of a request header that is set",
    (text) => proxying({ requestHeaders: { set: [{ name: text, value: "1" }] } }),
  ],
  [
    "the value of a request header that is set",
    (text) => proxying({ requestHeaders: { set: [{ name: "x-set", value: text }] } }),
  ],
  [
    "the name of a response header that is added",
    (text) => proxying({ responseHeaders: { add: [{ name: text, value: "1" }] } }),
  ],
  [
    "the value of a response header that is added",
    (text) => proxying({ responseHeaders: { add: [{ name: "x-added", value: text }] } }),
  ],
  ["the name of a response header that is hidden", (text) => proxying({ responseHeaders: { hide: [text] } })],
  [
    "the name of an upstream",
    (text) =>
      virtualServer({
        upstreams: [{ name: text, service: "one", port: 80 }],
        routes: [{ path: "/", action: { pass: text } }],
      }),
  ],
  ["a time of an upstream", (text) => upstream({ "connect-timeout": text }), "5s"],
  ["the errors after which another peer is tried", (text) => upstream({ "next-upstream": text }), "error timeout"],
  ["the most bytes of a body", (text) => upstream({ "client-max-body-size": text }), "1m"],
  ["the method of an upstream", (text) => upstream({ "lb-method": `hash ${text}` }), "$request_uri"],
  ["the name of a session cookie", (text) => upstream({ sessionCookie: { enable: true, httpOnly: true, name: text } })],
  [
    "the path of a session cookie",
    (text) => upstream({ sessionCookie: { enable: true, httpOnly: true, name: "s", path: `/${text}` } }),
  ],
  ["the host of an Ingress", (text) => ingress({}, "/", text), HOSTILE],
  ["the path of an Ingress", (text) => ingress({}, `/${text}`)],
  ["the exact path of an Ingress", (text) => ingress({}, `/${text}`, HOSTILE, "Exact")],
  ["the pattern of an Ingress", (text) => ingress(REGEX, `/${text}`, HOSTILE, "ImplementationSpecific")],
  ["a rewrite target", annotated("rewrite-target", REGEX, "/(.*)"), "/$1"],
  ["a hash key", annotated("upstream-hash-by"), "$request_uri"],
  ["a time of an Ingress", annotated("proxy-read-timeout"), "5"],
];

/** An OpenNJet, or a double of one, with a carrier that holds nothing yet. */
export interface Target {
  carrier: LocationsCarrier;
  http: number;
}

/** Tests, one for each place of a text. */
export function nothingBreaksOut(start: () => Promise<Target>): void {
  it.each(PLACES)(
    "%s",
    async (_name, object, sample = "plain") => {
      const { carrier, http } = await start();
      const driven = await drivenByObjects(carrier);
      const peer = closing(
        await httpPeer(({ url, headers }, response) => response.end(JSON.stringify({ url, set: headers["x-set"] }))),
      );
      const safe = virtualServer({
        host: SAFE,
        upstreams: [],
        routes: [{ path: "/", action: { return: { body: "safe" } } }],
      });
      const others = `${service("one", "127.0.0.1", peer.port)}---\n${JSON.stringify({ ...safe, metadata: { name: "safe" } })}`;
      expect(await driven.set(others)).toEqual([]);
      expect(await driven.set(JSON.stringify(object(sample)))).toEqual([]);
      // What can't be served at all would leave nothing tested.
      expect([...driven.model.snapshot().hosts.values()].map(({ pattern }) => patternText(pattern))).toContain(HOSTILE);
      for (const text of [sample, ...TEXTS]) {
        const failures = await driven.set(JSON.stringify(object(text)));
        if (failures.length === 0) await meansWhatTheCoreSays(driven, http, text);
        expect(failures.map(({ code }) => code).filter((code) => !/^PROXY_/.test(code))).toEqual([]);
        expect((await ask(http, { host: SAFE, path: "/pwned" })).body, JSON.stringify(text)).toBe("safe");
        const unknown = await ask(http, { host: "nobody.example.com", path: "/pwned" });
        expect(unknown.status, JSON.stringify(text)).toBe(404);
        if (failures.length > 0) await driven.remove(JSON.stringify(object(sample)));
      }
    },
    300_000,
  );
}

/** Asks for a few targets, and compares with what the core decides. */
async function meansWhatTheCoreSays({ model }: Driven, http: number, text: string): Promise<void> {
  const table = tableOfModel(model);
  const printable = /^[\x21-\x7e]+$/.test(text) && text.length < 100 ? [`/${text}`, `/?a=${text}`] : [];
  try {
    for (const target of ["/", "/x", "/pwned", ...printable]) {
      const value = /^[\x21-\x7e][\x20-\x7e]*$/.test(text) && text.length < 100 ? text.trimEnd() : "1";
      const headers = { "x-h": value };
      const decision = table.decide(request(target, { host: HOSTILE, headers }), 0, 0);
      const answer = await ask(http, { host: HOSTILE, path: target, headers });
      const about = JSON.stringify({ text, target, decision });
      if (decision.action === "proxy") {
        expect(answer.status, about).toBe(200);
        expect((JSON.parse(answer.body) as { url: string }).url, about).toBe(decision.target);
      } else expect(saidOf(answer, wantedOf(decision)), about).toEqual(wantedOf(decision));
    }
  } finally {
    table.free();
  }
}

function tableOfModel(model: RoutingModel): RouteTable {
  const table = makeRoutingTable();
  const { hosts, upstreams } = model.snapshot();
  for (const { peers } of upstreams.values()) table.setPeers(peers);
  for (const rules of hosts.values()) table.setHost(rules);
  return table;
}

interface Said {
  status: number;
  location?: string;
  body?: string;
  type?: string;
}

/** What a decision that proxies nothing has the client see; pages of the proxy itself may be of any text. */
function wantedOf(decision: Exclude<Decision, { action: "proxy" }>): Said {
  if (decision.action === "redirect") return { status: decision.status, location: decision.location };
  const { status, body, contentType } = decision;
  return body === undefined ? { status } : { status, body, type: contentType ?? "text/plain" };
}

/** The same of an answer, as far as it is wanted. */
function saidOf({ status, headers, body }: Answer, wanted: Said): Said {
  const said: Said = { status };
  if (wanted.location !== undefined) said.location = headers.location;
  if (wanted.body !== undefined) said.body = body;
  if (wanted.type !== undefined) said.type = headers["content-type"];
  return said;
}
