/** Rules and peers in which every feature of the format occurs, for tests that damage images or send hostile requests. */
import { VARIABLE_NAMES } from "../../core-wasm/binding/compile/numbers.js";
import type {
  Action,
  Condition,
  HeaderChange,
  HostRules,
  PeerSetSource,
  Split,
  Template,
} from "../../core-wasm/binding/source.js";
import {
  answer,
  argument,
  cookie,
  equals,
  exact,
  header,
  hostRules,
  peers,
  prefix,
  regex,
  route,
  segments,
} from "../support/rules.js";

const EVERYTHING: Template = [
  "<",
  header("x-a"),
  cookie("session"),
  argument("q"),
  ...VARIABLE_NAMES.map((name) => ({ kind: "variable", name }) as const),
  { kind: "group", index: 0 },
  { kind: "group", index: 1 },
  { kind: "group", index: 9 },
  ">",
];

const HEADERS: HeaderChange[] = [
  { op: "set-request", name: "X-All", value: EVERYTHING },
  { op: "drop-request" },
  { op: "add-response", name: "X-Group", value: [{ kind: "group", index: 1 }], always: true },
  { op: "hide-response", name: "Server" },
  { op: "pass-response", name: "Date" },
  { op: "ignore-response", name: "Expires" },
];

const PROXY: Action = { kind: "proxy", upstream: "plain" };
const HASHED: Action = {
  kind: "proxy",
  upstream: "hashed",
  rewrite: { kind: "prefix", text: "/new?v=1" },
  headers: HEADERS,
};
const REGEX_REWRITE: Action = {
  kind: "proxy",
  upstream: "plain",
  rewrite: {
    kind: "path",
    template: ["/", { kind: "group", index: 2 }, "/", { kind: "group", index: 1 }, argument("q")],
  },
  headers: HEADERS,
};
const REDIRECT: Action = { kind: "redirect", status: 308, location: ["https://", ...EVERYTHING], headers: HEADERS };
const NO_PEERS: Action = { kind: "proxy", upstream: "absent", rewrite: { kind: "path", template: EVERYTHING } };
const SPLIT: Split = {
  kind: "split",
  entries: [
    { weight: 20, action: HASHED },
    { weight: 0, action: REDIRECT },
    { weight: 79, action: REGEX_REWRITE },
    { weight: 1, action: answer(...EVERYTHING) },
  ],
};

const CONDITIONS: Condition[][] = [
  [equals(header("x-a"), "yes"), equals(cookie("session"), "abc"), equals(argument("q"), "1", true)],
  [{ source: header("x-b"), test: { kind: "regex", pattern: "^(a|b)+c?$", ignoreCase: true }, negated: false }],
  [{ source: cookie("session"), test: { kind: "empty" }, negated: true }],
  ...VARIABLE_NAMES.map((name): Condition[] => [equals({ kind: "variable", name }, "never")]),
];

const MATCHES = CONDITIONS.map((conditions, i) => ({
  conditions,
  outcome: [SPLIT, PROXY, REDIRECT, REGEX_REWRITE][i % 4],
}));

const MANY_CHILDREN = [..."0123456789abcdefé"].map((c) => route(prefix(`/many/${c}`), PROXY));

/** One table: exact, wildcard, any-host and default patterns; every kind of path, test, action and header change. */
export const FEATURE_RULES: HostRules[] = [
  hostRules(
    [
      route(exact("/"), answer("root")),
      route(exact("/a/b"), undefined, { matches: MATCHES }),
      route(segments("/a"), SPLIT, { matches: MATCHES.slice(0, 2) }),
      route(segments("/a/b/c"), REDIRECT),
      route(prefix("/a/b"), HASHED),
      route(prefix("/stop", true), NO_PEERS),
      route(regex("^/([a-z]+)/([0-9]+)$"), REGEX_REWRITE),
      route(regex("\\.(php|PHP)$", { ignoreCase: true }), undefined, { matches: MATCHES.slice(1, 3) }),
      route(regex("/(x+)y", { anchored: true }), REDIRECT),
      ...MANY_CHILDREN,
    ],
    {
      guards: [
        {
          resource: "g",
          match: { conditions: [equals({ kind: "variable", name: "uri" }, "/guarded")], outcome: REDIRECT },
        },
      ],
      unmatched: { resource: "u", outcome: SPLIT },
    },
  ),
  {
    pattern: { kind: "wildcard", suffix: "wild.example.com", labels: "one" },
    guards: [],
    routes: [route(segments("/"), HASHED), route(exact("/a"), undefined, { matches: MATCHES.slice(2) })],
  },
  {
    pattern: { kind: "wildcard", suffix: "example.com", labels: "any" },
    guards: [{ resource: "g", match: { conditions: CONDITIONS[1], outcome: SPLIT } }],
    routes: [route(regex("a"), REGEX_REWRITE), route(regex("."), answer(...EVERYTHING))],
  },
  { pattern: { kind: "any" }, guards: [], routes: [route(prefix("/only"), PROXY)] },
  {
    pattern: { kind: "default" },
    guards: [],
    routes: [],
    unmatched: { resource: "d", outcome: answer(...EVERYTHING) },
  },
];

export const FEATURE_PEERS: PeerSetSource[] = [
  peers("plain", [80, 81, 82]),
  {
    ...peers("hashed", [80, 81, 82], { kind: "ring", key: [header("x-user"), cookie("session"), ...EVERYTHING] }),
    sessionCookie: "njet",
  },
];

/** Targets that reach every rule of the table. */
export const FEATURE_TARGETS = [
  "/",
  "/a",
  "/a/b",
  "/a/b/c?q=1&session=2",
  "/a/%62/x",
  "/stop/x.php",
  "/x.PHP?q",
  "/abc/123?x#y",
  "/xxxy",
  "/many/7/x",
  "/many/%C3%A9",
  "/guarded",
  "/only/this",
  "/a//./../%2e%2e",
  "bad",
  "/%zz",
];
