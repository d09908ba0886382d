import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadCore } from "../../controller/core-file.js";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import type { Core } from "../../core-wasm/binding/core.js";
import type { HostRules } from "../../core-wasm/binding/source.js";
import type { Nginx } from "../support/nginx.js";
import { compileImages } from "../support/raw-core.js";
import { answer, hostRules, prefix, route } from "../support/rules.js";
import { Replay } from "./replay.js";
import { deadlyHost, removeModules, smallModule, TRAP_NAMES, trappingCore, trapText } from "./trapping-modules.js";
import { compare, nativeParts, pidOf, startWorker } from "./worker.js";

const parts = await nativeParts();
const RULES: HostRules[] = [hostRules([route(prefix("/"), answer("here"))])];

function request(host: string) {
  const address = { clientAddress: "10.0.0.1", clientPort: 9 };
  return {
    method: "GET",
    scheme: "http",
    host,
    target: "/",
    protocol: "HTTP/1.1",
    ...address,
    header: () => undefined,
  } as const;
}

describe.skipIf(parts.reason !== undefined)("a trap in a worker of NGINX", () => {
  let core: Core;
  let worker: Nginx;
  let pid: string;
  let small: string;

  beforeAll(async () => {
    if (parts.reason !== undefined) return;
    core = await loadCore();
    small = await nativeCore({ wasm: smallModule() });
    worker = await startWorker({ ...parts, library: await nativeCore({ wasm: trappingCore() }) });
    pid = await pidOf(worker);
  }, 180_000);

  afterAll(async () => {
    await worker?.close();
    removeModules();
  });

  it("of any kind ends the call and its instance, and nothing else", async () => {
    const replay = new Replay(core);
    const names = [...TRAP_NAMES.map((name) => `njk_${name}`), "njk_sound"];
    const texts = TRAP_NAMES.map((name) => `njk_${name}|-128|-128|${escaped(trapText(name))}`);
    for (let round = 0; round < 100; round++)
      replay.only("L", [small, ...names], [...texts, "njk_sound|42|42|"].join(";"));
    await compare(worker, replay);
    replay.free();
    expect(await pidOf(worker)).toBe(pid);
  });

  it("leaves the other instances of the process as they are", async () => {
    const replay = new Replay(core);
    // Every third of 300 has trapped.
    replay.only("I", [small, "300"], String(200 * 42 + 100 * -128));
    await compare(worker, replay);
    replay.free();
  });

  it("fails one request; the next is decided by a new core with the same rules", async () => {
    const replay = new Replay(core);
    for (const image of compileImages(core, RULES).shards) replay.loadShard(image);
    for (const [i, name] of TRAP_NAMES.entries()) {
      replay.decide(request("example.com"), 0, 0);
      replay.only("R", fieldsOf(deadlyHost(name)), `error|${escaped(`the core trapped: ${trapText(name)}`)}`);
      replay.only("T", [], String(i + 1));
      replay.decide(request("example.com"), 0, 0);
    }
    const lines = await compare(worker, replay);
    replay.free();
    expect(lines.filter((line) => line.startsWith("return|200|"))).toHaveLength(2 * TRAP_NAMES.length);
    expect(await pidOf(worker)).toBe(pid);
  });

  it("takes no memory for good, however often it happens", async () => {
    const deadly = new Replay(core);
    const rules = compileImages(core, RULES).shards;
    const trap = async (times: number) => {
      deadly.reset();
      for (const image of rules) deadly.loadShard(image);
      const expected = `error|${escaped(`the core trapped: ${trapText("out_of_bounds")}`)}`;
      for (let i = 0; i < times; i++) deadly.only("R", fieldsOf(deadlyHost("out_of_bounds")), expected);
      await compare(worker, deadly);
      return Number((await worker.post("/replay", Buffer.from("V\0"))).body);
    };
    const before = await trap(500);
    const after = await trap(2000);
    deadly.free();
    expect(before).toBeGreaterThan(1000);
    // An instance has half a megabyte: 1,500 of them would be seen.
    expect(after).toBeLessThan(before + 20_000);
    expect(worker.errorLog()).not.toMatch(/\[(error|crit|alert|emerg)\]|exited on signal/);
  });

  it("does not come of memory that runs out: the core answers that there is none", async () => {
    const replay = new Replay(core);
    // 16 MiB, of which the core itself takes less than one.
    replay.only("G", ["256"], "15|true|0");
    await compare(worker, replay);
    replay.free();
  });
});

/** A request as an operation has it. */
function fieldsOf(host: string): string[] {
  return [host, "/", "0", "0", "0", "10.0.0.1", "9", "GET", "HTTP/1.1"];
}

function escaped(text: string): string {
  return text.replaceAll(" ", "%20");
}
