import { Agent } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PlanStep } from "../../controller/reconcile/plan.js";
import type { RegexEngine } from "../../core-wasm/binding/regex.js";
import type { HostRules, Route } from "../../core-wasm/binding/source.js";
import { RequestNginx } from "../nginx/request-nginx.js";
import { compiled, createEngine } from "../regex/core.js";
import { PatternWriter, writeText } from "../regex/patterns.js";
import { Random } from "../regex/random.js";
import { runCleanups } from "../support/harness.js";
import { type Answer, ask } from "../support/http-client.js";
import { httpPeer, type Peer } from "../support/peers.js";
import { fullPlan, keyOf, upstreamStep } from "../support/plans.js";
import { answer, header, prefix, regex, route } from "../support/rules.js";
import { type CarriedReal, carriedOver } from "./carried-real.js";
import { ORDINARY_PATTERNS, ORDINARY_REWRITES } from "./pattern-lists.js";
import { noOpenNjet, openNjetWith } from "./real-installation.js";

/** So many hosts have room, each with one location. */
const BATCH = 240;
const BATCHES = 3;
const TEXTS = 8;
/** Bytes of a path or header that a head of 32 KiB has room for. */
const LONG = 30_000;
const RESOURCE = "VirtualServer/default/patterns";

interface Pattern {
  text: string;
  ignoreCase: boolean;
}

describe.skipIf(noOpenNjet)("patterns over OpenNJet with the carrier locations", () => {
  let engine: RegexEngine;
  let njet: RequestNginx;
  let carried: CarriedReal;
  let peer: Peer;
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });

  beforeAll(async () => {
    engine = await createEngine();
    peer = await httpPeer((request, response) => response.end(request.url));
    njet = await RequestNginx.start([], { flavour: openNjetWith("locations") });
    carried = await carriedOver(njet);
  }, 600_000);
  afterAll(async () => {
    agent.destroy();
    await runCleanups();
    await peer?.close();
  });

  const hostOf = (i: number) => `p${i}.example.com`;

  /** One host for each; gives the numbers of those that are not refused. */
  async function carry(all: readonly { pattern: HostRules["pattern"]; routes: Route[] }[]): Promise<Set<number>> {
    const steps = all.map((one): PlanStep => ({ step: "set-host", rules: { guards: [], ...one } }));
    const { failures } = await carried.carrier.apply(fullPlan(upstreamStep("u", [peer.port]), ...steps));
    expect(failures.filter(({ code }) => code !== "PROXY_UNSUPPORTED")).toEqual([]);
    const refused = new Set(failures.map(({ piece }) => piece));
    return new Set([...all.keys()].filter((i) => !refused.has(hostOf(i))));
  }

  function onPath(i: number, { text, ignoreCase }: Pattern, rest: Partial<Route> = {}) {
    const path = { ...regex(text), ignoreCase };
    return onRoutes(i, route(path, answer("match"), { resource: RESOURCE, ...rest }));
  }

  function onHeader(i: number, { text: pattern, ignoreCase }: Pattern) {
    const test = { kind: "regex", pattern, ignoreCase } as const;
    const conditions = [{ source: header("x-text"), test, negated: false }];
    const matches = [{ conditions, outcome: answer("match") }];
    return onRoutes(i, route(prefix("/"), undefined, { resource: RESOURCE, matches }));
  }

  function onRoutes(i: number, ...routes: Route[]) {
    return { pattern: { kind: "exact", host: hostOf(i) } as const, routes };
  }

  async function send(i: number, path: string, text?: string): Promise<Answer> {
    const headers: Record<string, string> = text === undefined ? {} : { "X-Text": text };
    return ask(njet.http, { host: hostOf(i), path, headers, agent });
  }

  it(`match what the core matches, in ${BATCH * BATCHES} random ones, or are refused`, async () => {
    const random = new Random(5);
    let compared = 0;
    let matched = 0;
    for (let batch = 0; batch < BATCHES; batch++) {
      const highBytes = batch === BATCHES - 1;
      const writer = new PatternWriter(random, { context: batch === 1, highBytes });
      const patterns = Array.from({ length: BATCH }, () => {
        const { re2, ignoreCase } = writer.write(2);
        return { text: re2, ignoreCase };
      });
      const taken = await carry(
        patterns.map((pattern, i) => (i % 2 === 0 ? onPath(i, pattern) : onHeader(i, pattern))),
      );
      for (const i of taken) {
        const { text: re2, ignoreCase } = patterns[i];
        const program = compiled(engine, re2, { ignoreCase });
        for (let k = 0; k < TEXTS; k++) {
          const text = i % 2 === 0 ? pathText(random, highBytes) : headerText(random, highBytes);
          const { status } = await (i % 2 === 0 ? send(i, encodedPath(text)) : send(i, "/", text));
          const wanted = program.captures(text) === undefined ? 404 : 200;
          if (status !== wanted) expect({ re2, ignoreCase, text, status }).toEqual({ status: wanted });
          compared++;
          if (wanted === 200) matched++;
        }
        program.release();
      }
    }
    expect(compared).toBeGreaterThan(BATCH * BATCHES * TEXTS * 0.7);
    expect(matched).toBeGreaterThan(compared / 10);
  });

  it("give a rewrite the groups that the core gives it, or are refused", async () => {
    const random = new Random(6);
    const writer = new PatternWriter(random, { context: false, highBytes: false });
    const patterns: Pattern[] = ORDINARY_REWRITES.map((text) => ({ text, ignoreCase: false }));
    while (patterns.length < BATCH) {
      const { re2, ignoreCase } = writer.write(2);
      if (/\(/.test(re2)) patterns.push({ text: re2, ignoreCase });
    }
    const programs = patterns.map(({ text, ignoreCase }) => compiled(engine, text, { ignoreCase }));
    const groupsOf = (i: number) => [1, 2].filter((index) => index <= programs[i].groups);
    const taken = await carry(
      patterns.map((pattern, i) => {
        const template = ["/", ...groupsOf(i).flatMap((index) => [{ kind: "group", index } as const, "-"])];
        const rewrite = { kind: "path", template } as const;
        return onPath(i, pattern, { outcome: { kind: "proxy", upstream: keyOf("u"), rewrite } });
      }),
    );
    let compared = 0;
    for (const i of taken) {
      for (let k = 0; k < TEXTS * 2; k++) {
        const path = k < 2 ? "/old/foo/v1/a-b-c.php" : pathText(random, false).replaceAll(/[^a-z0-9/.-]/gi, "_");
        const captures = programs[i].captures(path);
        if (captures === undefined) continue;
        const { body } = await send(i, path);
        const wanted = `/${groupsOf(i)
          .map((index) => `${captures[index] ?? ""}-`)
          .join("")}`;
        if (body !== wanted) expect({ ...patterns[i], path, body }).toEqual({ body: wanted });
        compared++;
      }
    }
    for (const program of programs) program.release();
    expect([...ORDINARY_REWRITES.keys()].filter((i) => !taken.has(i))).toEqual([]);
    expect(taken.size).toBeGreaterThan(BATCH / 3);
    expect(compared).toBeGreaterThan(BATCH);
  });

  it("of users are answered as the core does where paths and headers are long and hostile, and never with 500", async () => {
    const patterns = ORDINARY_PATTERNS.map((text) => ({ text, ignoreCase: false }));
    const paths = await carry(patterns.map((pattern, i) => onPath(i, pattern)));
    expect(paths.size).toBe(patterns.length);
    const asked = async (i: number, text: string, sent: () => Promise<Answer>) => {
      const program = compiled(engine, patterns[i].text);
      const wanted = program.captures(text) === undefined ? 404 : 200;
      const { status } = await sent();
      if (status !== wanted) expect({ ...patterns[i], text: text.slice(0, 200), status }).toEqual({ status: wanted });
      program.release();
    };
    for (const i of paths) {
      for (const text of hostileTexts(patterns[i].text)) {
        const path = fitting(`/${text}`.replaceAll(/\/(?=[/.])/g, "/a"));
        await asked(i, path, () => send(i, encodedPath(path)));
      }
    }
    const headers = await carry(patterns.map((pattern, i) => onHeader(i, pattern)));
    for (const i of headers) {
      for (const text of hostileTexts(patterns[i].text)) {
        const value = text.replaceAll(/[\0-\x1f]/g, "").trim();
        await asked(i, value, () => send(i, "/", value));
      }
    }
    const { workers } = await njet.client.state();
    expect(workers).toHaveLength(1);
    expect(njet.errorLog()).not.toMatch(/pcre|exited on signal/);
  });
});

/** A path that NGINX takes as it is. */
function pathText(random: Random, highBytes: boolean): string {
  return `/${writeText(random, highBytes)}`.replaceAll(/\/(?=[/.])/g, "/a");
}

function headerText(random: Random, highBytes: boolean): string {
  return writeText(random, highBytes)
    .replaceAll(/[\0-\x08\x0a-\x1f]/g, "x")
    .trim();
}

/** Bytes of a path, a character for each, as a client sends them. */
function encodedPath(path: string): string {
  return path.replaceAll(/[^A-Za-z0-9/._-]/g, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`);
}

/** The end of a path that has room in a head. */
function fitting(path: string): string {
  const room = Math.floor((path.length * LONG) / Math.max(LONG, encodedPath(path).length));
  return `/${path.slice(path.length - room).replace(/^[/.]+/, "")}`;
}

/** Texts that a pattern reads for long and does not match, most of them: its own parts again and again. */
function hostileTexts(pattern: string): string[] {
  const own = pattern.replaceAll(/\(\?\w*[:)]|[\\^$()[\]{}*+?|]/g, "");
  const units = [own, own.replaceAll(".", "a"), own.slice(0, 6), "a", "/a", "a-", "ab/", "/1/", ".", "a.", "abc"];
  return [...new Set(units)].flatMap((unit) => {
    const long = unit.repeat(LONG / unit.length);
    return [long, `${long.slice(1)}!`, `${long.slice(2)}\n`];
  });
}
