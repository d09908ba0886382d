import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Core } from "../../core-wasm/binding/core.js";

const bytes = readFileSync(new URL("../../dist/core.wasm", import.meta.url));
const VERSION = Core.loadSync(bytes).exports.abi_version();

/** Answers of the server by path: status, type and body. */
const ANSWERS: Record<string, { status?: number; type: string; body: Uint8Array }> = {
  "/core.wasm": { type: "application/wasm", body: bytes },
  "/typed-otherwise": { type: "application/octet-stream", body: bytes },
  "/missing": { status: 404, type: "application/wasm", body: bytes },
  "/page": { type: "text/html", body: Buffer.from("<!doctype html>") },
  "/page-of-wasm": { type: "application/wasm; charset=utf-8", body: Buffer.from("<!doctype html>") },
};

let server: Server;
let base: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    const { status = 200, type, body } = ANSWERS[request.url ?? ""];
    response.writeHead(status, { "content-type": type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.close();
});

async function version(input: Parameters<typeof Core.load>[0]): Promise<number> {
  return (await Core.load(input)).exports.abi_version();
}

describe("the core is loaded from", () => {
  it("bytes, as an array, a buffer or a view of a part of one", async () => {
    const part = new Uint8Array(bytes.length + 9);
    part.set(bytes, 5);
    expect(await version(bytes)).toBe(VERSION);
    expect(await version(part.buffer.slice(5, 5 + bytes.length))).toBe(VERSION);
    expect(await version(part.subarray(5, 5 + bytes.length))).toBe(VERSION);
  });

  it("a module that the caller has compiled, at once too", async () => {
    const module = new WebAssembly.Module(bytes);
    expect(await version(module)).toBe(VERSION);
    expect(Core.loadSync(module).exports.abi_version()).toBe(VERSION);
  });

  it("a module of another realm", async () => {
    const module = runInNewContext("new WebAssembly.Module(bytes)", { bytes });
    expect(module instanceof WebAssembly.Module).toBe(false);
    expect(await version(module)).toBe(VERSION);
    expect(Core.loadSync(module).exports.abi_version()).toBe(VERSION);
  });

  it("an answer of fetch, or the promise of one, whatever its type", async () => {
    expect(await version(await fetch(`${base}/core.wasm`))).toBe(VERSION);
    expect(await version(fetch(`${base}/core.wasm`))).toBe(VERSION);
    expect(await version(fetch(`${base}/typed-otherwise`))).toBe(VERSION);
  });

  it("a URL", async () => {
    expect(await version(new URL(`${base}/core.wasm`))).toBe(VERSION);
  });
});

describe("what is no core is refused with CORE_UNREADABLE", () => {
  const unreadable = (reason: RegExp) => ({ code: "CORE_UNREADABLE", message: expect.stringMatching(reason) });

  it("where the address answers with an error", async () => {
    await expect(Core.load(new URL(`${base}/missing`))).rejects.toMatchObject(unreadable(/missing has the status 404/));
  });

  it("where nothing answers", async () => {
    await expect(Core.load(new URL("http://127.0.0.1:1/core.wasm"))).rejects.toMatchObject(unreadable(/had: ./));
  });

  it("where the answer is something else, whatever its type says", async () => {
    await expect(Core.load(new URL(`${base}/page`))).rejects.toMatchObject(unreadable(/had: ./));
    await expect(Core.load(new URL(`${base}/page-of-wasm`))).rejects.toMatchObject(unreadable(/had: ./));
  });

  it("where the bytes are cut off", async () => {
    await expect(Core.load(bytes.subarray(0, 1000))).rejects.toMatchObject(unreadable(/had: ./));
  });
});

it("another module is refused for its interface", async () => {
  const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
  await expect(Core.load(empty)).rejects.toMatchObject({ code: "CORE_ABI_VERSION" });
});
