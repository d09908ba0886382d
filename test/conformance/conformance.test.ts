import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decisionJson } from "../../controller/cli/decision-json.js";
import { parseRequestSpec } from "../../controller/cli/request-line.js";
import { loadBundle } from "../../core-wasm/binding/load-bundle.js";
import { strictVectors } from "../model/model-support.js";
import { sharedCore } from "../support/core.js";
import { HOSTS } from "./hosts.js";
import { requiredHosts } from "./required-hosts.js";
import { writeSuite } from "./suite.js";

const TIMEOUT = 600_000;

let folder: string;
/** Lines of Node. */
let decisions: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "njet-kic-conformance-"));
  decisions = writeSuite(sharedCore, folder);
}, TIMEOUT);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function digest(lines: string): string {
  return createHash("sha256").update(lines, "latin1").digest("hex");
}

/** The first line that is different, with its request; undefined where there is none. */
function difference(lines: string): { request: string; wanted: string; given: string | undefined } | undefined {
  const given = lines.split("\n");
  const requests = readFileSync(join(folder, "requests.jsonl"), "latin1")
    .split("\n")
    .slice(1)
    .filter((line) => !line.startsWith('{"bundle"'));
  const index = decisions.split("\n").findIndex((line, i) => line !== given[i]);
  if (index < 0 && given.length === decisions.split("\n").length) return undefined;
  return { request: requests[index] ?? "", wanted: decisions.split("\n")[index] ?? "", given: given[index] };
}

describe("the suite", () => {
  it("holds the decisions that the vectors ask for", () => {
    for (const { name, cases } of strictVectors()) {
      const { table } = loadBundle(sharedCore, readFileSync(join(folder, `${name}.njkb`)));
      for (const { request, expect: expected } of cases) {
        expect(decisionJson(table.decide(parseRequestSpec(request), 0)), `${name}: ${request.url}`).toMatchObject(
          expected,
        );
      }
      table.free();
    }
  });

  it("meets every kind of decision", () => {
    const all = decisions.trimEnd().split("\n");
    const count = (part: string) => all.filter((line) => line.includes(part)).length;
    expect(all.length).toBeGreaterThan(5_000);
    for (const part of [
      ...[
        '"action":"proxy"',
        '"action":"redirect"',
        '"action":"return"',
        '"status":400',
        '"status":404',
        '"status":414',
      ],
      ...['"status":503', '"by":"none"', '"by":"route"', '"by":"guard"', '"by":"unmatched"', '"new":true', '"peer":"['],
      ...["[1,0,", "[2,0,", "[3,0,", "[3,1,", "[4,0,", "[5,0,", "[6,0,", "[7,0,", "[8,0,", "[9,0,"],
    ]) {
      expect(count(part), part).toBeGreaterThan(0);
    }
  });
});

describe("the decisions of each host are those of Node", () => {
  const keys = HOSTS.map(({ key }) => key);
  const required = requiredHosts(process.env.NJET_KIC_REQUIRE_HOSTS, keys);
  for (const { key, name, prepare } of HOSTS) {
    it(name, { timeout: TIMEOUT }, async ({ skip }) => {
      const host = await prepare();
      if ("skipped" in host) {
        if (required.has(key)) expect.fail(`${name} is required here, and can't run: ${host.skipped}`);
        console.error(`conformance of ${name} is skipped: ${host.skipped}`);
        return skip(host.skipped);
      }
      const lines = await host.replay(folder);
      console.log(`${digest(lines)}  ${name}, ${lines.split("\n").length - 1} decisions`);
      expect(difference(lines)).toBeUndefined();
      expect(digest(lines)).toBe(digest(decisions));
    });
  }
});
