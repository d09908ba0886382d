/** Rules with all that their types allow, sensible or not: what the compiler of shards has to take or to refuse. */
import type {
  Action,
  Condition,
  ConditionTest,
  ErrorPage,
  HeaderChange,
  HostPattern,
  HostRules,
  Match,
  Outcome,
  PathRule,
  Route,
  Template,
  TemplatePart,
  ValueSource,
  VariableName,
} from "../../core-wasm/binding/source.js";
import type { Random } from "../support/random.js";

/** Texts that rules hold; names of upstreams are one of them with a number below 12. */
export const TEXTS = [
  "a",
  "é",
  "😀",
  "\ud800",
  "\udc00b",
  "x".repeat(70),
  "ü".repeat(60),
  "X-Up",
  "cookie",
  "Cookie",
  "a b",
  "/",
];
const VARIABLES: VariableName[] = [
  ...(["args", "host", "http2", "https", "query_string", "remote_addr", "remote_port"] as const),
  ...(["request", "request_method", "request_uri", "scheme", "server_protocol", "uri"] as const),
];
const PIECES = [..."abxyz0123456789", "ab", "abc", "é", "ü", "\0", "😀", "long-common-folder"];
const PATTERNS = ["^/a", "b$", "(a|b)+", "é", "[0-9]{3}$", "^(x|y)*z"];
const HOSTS: HostPattern[] = [
  ...["h", "host.example.com", "1234567", "12345678", "é".repeat(127)].map(
    (host) => ({ kind: "exact", host }) as const,
  ),
  { kind: "wildcard", suffix: "a.b", labels: "one" },
  { kind: "wildcard", suffix: "a.b.c.d", labels: "any" },
  { kind: "any" },
  { kind: "default" },
];
const WRONG_NUMBERS = [-1, 0.5, 99, 1000, 65_536, 1_000_001, 2 ** 31, 2 ** 32 + 200, 1e300, Number.NaN, Infinity];

/** Makes rules. With `wrong` about one value in so many is one that the format can't hold. */
export class RandomRules {
  readonly #random: Random;
  readonly #wrong: number;

  constructor(random: Random, wrong = 0) {
    this.#random = random;
    this.#wrong = wrong;
  }

  /** One value or the other, which is wrong. */
  #orWrong<T>(value: T, wrong: () => T): T {
    return this.#wrong > 0 && this.#random.onceIn(this.#wrong) ? wrong() : value;
  }

  #list<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#random.below(most + 1) }, make);
  }

  #text(): string {
    return this.#random.onceIn(8) ? "" : this.#random.pick(TEXTS);
  }

  #name(): string {
    const name = this.#random.pick(TEXTS);
    return this.#orWrong(name, () => this.#random.pick(["", "n".repeat(65_536)]));
  }

  #number(right: number): number {
    return this.#orWrong(right, () => this.#random.pick(WRONG_NUMBERS));
  }

  #source(): ValueSource {
    const kind = this.#random.pick(["header", "cookie", "argument", "variable"] as const);
    return kind === "variable" ? { kind, name: this.#random.pick(VARIABLES) } : { kind, name: this.#name() };
  }

  #part(): TemplatePart {
    switch (this.#random.below(4)) {
      case 0:
        return this.#text();
      case 1:
        return { kind: "group", index: this.#number(this.#random.below(10)) };
      case 2:
        return this.#random.onceIn(40) ? "😀y".repeat(9000) : "q";
      default:
        return this.#source();
    }
  }

  template(): Template {
    return this.#list(4, () => this.#part());
  }

  #headerChange(): HeaderChange {
    const op = this.#random.pick([
      ...(["set-request", "drop-request", "add-response"] as const),
      ...(["hide-response", "pass-response", "ignore-response"] as const),
    ]);
    if (op === "drop-request") return { op };
    const name = this.#text();
    if (op === "set-request") return { op, name, value: this.template() };
    if (op === "add-response") return { op, name, value: this.template(), always: this.#random.onceIn(2) };
    return { op, name };
  }

  #errorPage(): ErrorPage {
    const random = this.#random;
    const codes = [this.#number(300 + random.below(300)), 300 + random.below(300)];
    if (random.onceIn(2)) return { codes, kind: "redirect", status: 302, location: this.template() };
    const value = this.template();
    const headers = [{ op: "add-response", name: this.#text(), value, always: true } as const];
    return { codes, kind: "return", status: 200, contentType: "text/plain", body: this.template(), headers };
  }

  #action(): Action {
    const random = this.#random;
    const headers = random.onceIn(2) ? undefined : this.#list(3, () => this.#headerChange());
    switch (random.below(3)) {
      case 0: {
        const upstream = this.#orWrong(`${random.pick(TEXTS)}${random.below(12)}`, () => "");
        const rewrites = [
          undefined,
          { kind: "prefix", text: this.#text() } as const,
          { kind: "path", template: this.template() } as const,
        ];
        const errorPages = random.onceIn(3) ? this.#list(2, () => this.#errorPage()) : undefined;
        return { kind: "proxy", upstream, rewrite: random.pick(rewrites), headers, errorPages };
      }
      case 1:
        return { kind: "redirect", status: this.#number(300 + random.below(9)), location: this.template(), headers };
      default: {
        const status = this.#number(100 + random.below(900));
        return { kind: "return", status, contentType: this.#text(), body: this.template(), headers };
      }
    }
  }

  #outcome(): Outcome {
    if (!this.#random.onceIn(4)) return this.#action();
    const first = { weight: this.#number(1), action: this.#action() };
    const rest = this.#list(3, () => ({ weight: this.#number(this.#random.below(9)), action: this.#action() }));
    return { kind: "split", entries: this.#orWrong([first, ...rest], () => []) };
  }

  #pattern(): string {
    return this.#orWrong(this.#random.pick(PATTERNS), () =>
      this.#random.pick(["(", "a{2000}", "\ud800[", "x".repeat(4097)]),
    );
  }

  #condition(): Condition {
    const tests: ConditionTest[] = [
      { kind: "equals", value: this.#text() },
      { kind: "regex", pattern: this.#pattern(), ignoreCase: this.#random.onceIn(2) },
      { kind: "empty" },
    ];
    return { source: this.#source(), test: this.#random.pick(tests), negated: this.#random.onceIn(2) };
  }

  #match(): Match {
    return { conditions: this.#list(3, () => this.#condition()), outcome: this.#outcome() };
  }

  #path(): string {
    const random = this.#random;
    if (random.onceIn(10)) return "";
    const separator = random.pick(["/", "/", ""]);
    const path = `/${this.#list(3, () => random.pick(PIECES)).join(separator)}${random.pick(["", "/", "//"])}`;
    return this.#orWrong(path, () => random.pick(["a", "é/", `/${"p".repeat(4096)}`]));
  }

  #pathRule(): PathRule {
    const random = this.#random;
    const path = this.#path();
    switch (random.below(4)) {
      case 0:
        return { kind: "exact", path };
      case 1:
        return { kind: "segments", path };
      case 2:
        return { kind: "prefix", path, stopsRegex: random.onceIn(3) };
      default:
        return { kind: "regex", pattern: this.#pattern(), ignoreCase: random.onceIn(2), anchored: random.onceIn(2) };
    }
  }

  #route(): Route {
    const random = this.#random;
    const path = this.#pathRule();
    const spelled = path.kind === "regex" ? path.pattern : path.path;
    return {
      path,
      label: random.onceIn(2) ? spelled : this.#text(),
      resource: this.#text(),
      matches: random.onceIn(3) ? this.#list(3, () => this.#match()) : [],
      outcome: random.onceIn(8) ? undefined : this.#outcome(),
    };
  }

  /** Rules of one host: mostly of some ten routes, now and then of some hundreds. */
  next(): HostRules {
    const random = this.#random;
    const wrongHosts: HostPattern[] = [
      { kind: "exact", host: "" },
      { kind: "exact", host: "é".repeat(128) },
      { kind: "wildcard", suffix: "", labels: "any" },
    ];
    return {
      pattern: this.#orWrong(random.pick(HOSTS), () => random.pick(wrongHosts)),
      guards: random.onceIn(3) ? this.#list(2, () => ({ resource: this.#text(), match: this.#match() })) : [],
      routes: this.#list(random.onceIn(50) ? 300 : 14, () => this.#route()),
      unmatched: random.onceIn(3) ? { resource: this.#text(), outcome: this.#outcome() } : undefined,
    };
  }
}
