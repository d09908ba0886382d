import { readdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { ControlClient, ControlError } from "../../controller/proxies/nginx/control-client.js";
import { DigestIndex } from "../../controller/proxies/nginx/digest-index.js";
import { makePiece, PIECE, type Piece, pieceName } from "../../controller/proxies/nginx/piece.js";
import { encodeRecord } from "../../controller/proxies/nginx/record.js";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { installation, noNginx } from "./installation.js";
import { md5, StateNginx, type StateNginxOptions } from "./state-nginx.js";

cleanUpAfterEach();

const HEADER = Buffer.from("NJKS\x01\0\0\0", "latin1");

function piece(key: string, content: string | undefined, kind: number = PIECE.shard): Piece {
  return makePiece(kind, key, content === undefined ? undefined : Buffer.from(content));
}

async function start(options: StateNginxOptions = {}): Promise<StateNginx> {
  return await new StateNginx(await installation(), options).start();
}

/** What every worker is to hold. */
function holding(...pieces: Piece[]): Record<string, string> {
  return Object.fromEntries(pieces.map((one) => [pieceName(one), md5(one.content ?? "")]));
}

async function expectHeld(nginx: StateNginx, ...pieces: Piece[]): Promise<void> {
  const held = await nginx.held();
  expect(held.size).toBe((await nginx.workers()).length);
  for (const found of held.values()) expect(found).toEqual(holding(...pieces));
}

/** Resolves when the error log of an NGINX matches. */
async function logged(nginx: StateNginx, text: RegExp): Promise<void> {
  for (let tries = 0; tries < 500 && !text.test(nginx.log); tries++) await new Promise((r) => setTimeout(r, 10));
  expect(nginx.log).toMatch(text);
}

/** Resolves when the shared state has `count` pieces. Each try has a connection of its own: a stopped worker answers none. */
async function shared(nginx: StateNginx, count: number): Promise<void> {
  const headers = { authorization: `Bearer ${nginx.token}` };
  for (let tries = 0; tries < 100; tries++) {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, 100));
    const answer = await Promise.race([nginx.ask("/state", { headers }).catch(() => undefined), late]);
    if (answer !== undefined && JSON.parse(answer.body).count === count) return;
  }
  throw new Error("the pieces do not come");
}

/** Resolves when there are `count` workers, all of them other ones than `before`, and they have said so. */
async function workersOtherThan(
  nginx: StateNginx,
  before: readonly number[],
  count = before.length,
): Promise<number[]> {
  for (let tries = 0; tries < 1000; tries++) {
    const pids = (await nginx.workers().catch(() => [])).map(({ pid }) => pid);
    if (pids.length === count && pids.every((pid) => !before.includes(pid))) return pids;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("the workers stay");
}

describe.skipIf(noNginx)("state of NGINX", () => {
  beforeAll(() => installation(), 600_000);

  it("reaches all workers with one batch, and the answer says that they have it", async () => {
    const nginx = await start();
    const pieces = [piece("up", "u", PIECE.upstream), piece("shop.example.com", "rules"), piece("", "no host")];
    const answer = await nginx.client.post(pieces, { generation: "1-abc" });
    expect(answer).toMatchObject({ generation: "1-abc", seq: 1, late: [], failures: [] });
    expect(answer.workers.map(({ id, seq }) => [id, seq])).toEqual([
      [0, 1],
      [1, 1],
    ]);
    await expectHeld(nginx, ...pieces);
  });

  it("has one checksum on all sides: the controller's, the shared one, those of the workers", async () => {
    const nginx = await start();
    const index = new DigestIndex();
    const pieces = [piece("a", "1"), piece("b", "2", PIECE.certificate), piece("c", "3"), piece("ü.example.com", "4")];
    await nginx.client.post(pieces);
    const later = [piece("a", "5"), piece("c", undefined)];
    const answer = await nginx.client.post(later);
    for (const one of [...pieces, ...later]) index.set(pieceName(one), one.content && one.digest);
    expect(answer).toMatchObject({ sum: index.sum, count: 3 });
    expect(answer.workers.map(({ sum, count }) => [sum, count])).toEqual([
      [index.sum, 3],
      [index.sum, 3],
    ]);
  });

  it("tells digests of pieces, and never what is in them", async () => {
    const nginx = await start();
    const certificate = piece("shop.example.com", JSON.stringify({ chain: "c", key: "PRIVATE" }), PIECE.certificate);
    await nginx.client.post([certificate]);
    const { body } = await nginx.ask("/state?pieces", { headers: { authorization: `Bearer ${nginx.token}` } });
    expect(JSON.parse(body).pieces).toEqual({ "3:shop.example.com": certificate.digest });
    expect(body).not.toContain("PRIVATE");
  });

  it("reaches workers that no request comes to", async () => {
    const nginx = await start();
    await nginx.client.post([piece("a", "1")]);
    for (const held of (await nginx.held("/peek")).values()) expect(held).toEqual(holding(piece("a", "1")));
  });

  it("keeps the last good piece where a new one is refused, while the rest of the batch acts", async () => {
    const nginx = await start();
    await nginx.client.post([piece("a", "1"), piece("b", "1")]);
    const { failures } = await nginx.client.post([piece("a", "refuse me"), piece("b", "2"), piece("c", "2")]);
    const message = "told to refuse";
    expect(failures).toEqual([{ kind: 1, key: "a", code: "CORE_IMAGE_CORRUPT", message }]);
    await expectHeld(nginx, piece("a", "1"), piece("b", "2"), piece("c", "2"));
  });

  it("refuses pieces of a kind that nobody knows", async () => {
    const nginx = await start();
    const { failures } = await nginx.client.post([piece("a", "1", 99), piece("b", "1")]);
    expect(failures.map(({ kind, key, code }) => [kind, key, code])).toEqual([[99, "a", "PROXY_UNSUPPORTED"]]);
    await expectHeld(nginx, piece("b", "1"));
  });

  it("says which pieces the workers could not load, and keeps what they had", async () => {
    const nginx = await start();
    await nginx.client.post([piece("a", "1")]);
    const answer = await nginx.client.post([piece("a", "unloadable"), piece("b", "2")]);
    expect(answer.failures).toEqual([{ kind: 1, key: "a", code: "CORE_MEMORY", message: "told not to load" }]);
    await expectHeld(nginx, piece("a", "1"), piece("b", "2"));
    expect((await nginx.client.post([piece("c", "3")])).failures).toEqual([]);
  });

  it("survives a handler that throws, and neither logs nor answers what it threw over a certificate", async () => {
    const nginx = await start();
    const pieces = [piece("a", "throw SECRET", PIECE.certificate), piece("b", "1")];
    const answer = await nginx.client.post(pieces);
    expect(answer.failures.map(({ key, code }) => [key, code])).toEqual([["a", "PROXY_STEP_FAILED"]]);
    expect(JSON.stringify(answer)).not.toContain("SECRET");
    await expectHeld(nginx, piece("b", "1"));
    await logged(nginx, /a piece of kind 3 can't be taken over/);
    expect(nginx.log).not.toContain("SECRET");
  });

  it("refuses a piece for which there is no room, keeps what it had, and goes on with others", async () => {
    const nginx = await start({ dict: "1m" });
    await nginx.client.post([piece("a", "small")]);
    const large = "x".repeat(600_000);
    const { failures } = await nginx.client.post([piece("a", large), piece("b", large), piece("c", "1")]);
    expect(failures.map(({ key, code }) => [key, code])).toEqual([["b", "PROXY_STATE_FULL"]]);
    const again = await nginx.client.post([piece("a", "y".repeat(800_000)), piece("d", "1")]);
    expect(again.failures.map(({ key, code }) => [key, code])).toEqual([["a", "PROXY_STATE_FULL"]]);
    await expectHeld(nginx, piece("a", large), piece("c", "1"), piece("d", "1"));
    // What is taken away makes room.
    await nginx.client.post([piece("a", undefined)]);
    expect((await nginx.client.post([piece("b", large)])).failures).toEqual([]);
  });

  it("takes a body that NGINX has put into a file", async () => {
    const nginx = await start();
    const large = piece("large", "l".repeat(3_000_000));
    await nginx.client.post([large, piece("a", "1")]);
    await expectHeld(nginx, large, piece("a", "1"));
    expect(readdirSync(`${nginx.folder}/client_body`)).toEqual([]);
  });

  it("gives a worker that takes the place of a killed one the whole state before it serves", async () => {
    const nginx = await start();
    const pieces = Array.from({ length: 500 }, (_, i) => piece(`host-${i}`, `rules ${i}`));
    await nginx.client.post(pieces);
    const [first, second] = (await nginx.workers()).map(({ pid }) => pid);
    process.kill(first, "SIGKILL");
    let found: Record<string, string> | undefined;
    for (let tries = 0; tries < 5000 && found === undefined; tries++) {
      const answer = await nginx.ask("/peek").catch(() => undefined);
      const { pid, held } = JSON.parse(answer?.body ?? "{}");
      if (pid !== undefined && pid !== first && pid !== second) found = held ?? {};
    }
    expect(found).toEqual(holding(...pieces));
    expect((await nginx.client.post([piece("later", "1")])).late).toEqual([]);
  });

  it("goes over to new workers when NGINX reads its configuration anew", async () => {
    const nginx = await start();
    await nginx.client.post([piece("a", "1")], { generation: "7-x" });
    const before = (await nginx.workers()).map(({ pid }) => pid);
    nginx.hangUp();
    await workersOtherThan(nginx, before);
    await expectHeld(nginx, piece("a", "1"));
    // The old workers close kept connections as they end, maybe this very moment.
    const post = () => nginx.client.post([piece("b", "2")]);
    const answer = await post().catch(post);
    expect(answer).toMatchObject({ generation: "7-x", seq: 2, late: [], failures: [] });
    await expectHeld(nginx, piece("a", "1"), piece("b", "2"));
  });

  it("is completed by the next batch where a writer has died within one", async () => {
    const nginx = await start();
    await nginx.client.post([piece("a", "1")]);
    await nginx.ask("/die");
    const answer = await nginx.client.post([piece("b", "2")]);
    const half = piece("half", "half a batch");
    await expectHeld(nginx, piece("a", "1"), piece("b", "2"), half);
    expect(answer.count).toBe(3);
    expect(answer.workers.every(({ sum }) => sum === answer.sum)).toBe(true);
  });

  it("is not waited for in a worker that dies meanwhile", async () => {
    const nginx = await start();
    const [stopped] = (await nginx.workers()).map(({ pid }) => pid);
    process.kill(stopped, "SIGSTOP");
    const answers = Array.from({ length: 8 }, (_, i) => {
      const client = new ControlClient(nginx.control, nginx.token);
      cleanup(() => client.close());
      // Some meet the worker that dies, and get no answer.
      return client.post([piece(`host-${i}`, "1")]).catch(() => undefined);
    });
    await shared(nginx, 8);
    process.kill(stopped, "SIGKILL");
    const met = (await Promise.all(answers)).filter((answer) => answer !== undefined);
    expect(met.length).toBeGreaterThan(0);
    for (const { late } of met) expect(late).toEqual([]);
    await workersOtherThan(nginx, [stopped], 2);
  });

  it("has the workers that there are, when NGINX reads another number of them, more or less", async () => {
    const nginx = await start();
    for (const count of [4, 1, 3]) {
      const before = (await nginx.workers()).map(({ pid }) => pid);
      nginx.setWorkerCount(count);
      nginx.hangUp();
      const pids = await workersOtherThan(nginx, before, count);
      const { workers, late, seq } = await nginx.client.post([piece("shop.example.com", `${count}`)]);
      expect([workers.map(({ pid }) => pid), late]).toEqual([pids, []]);
      expect(workers.map((worker) => worker.seq)).toEqual(pids.map(() => seq));
      await expectHeld(nginx, piece("shop.example.com", `${count}`));
    }
  });

  it("reaches a worker that has missed more batches than are kept", async () => {
    const nginx = await start();
    const [stopped] = (await nginx.workers()).map(({ pid }) => pid);
    process.kill(stopped, "SIGSTOP");
    cleanup(() => process.kill(stopped, "SIGCONT"));
    // Nobody waits for the answers, which say after five seconds that the worker is late.
    const sent = Array.from({ length: 50 }, (_, i) => {
      const client = new ControlClient(nginx.control, nginx.token);
      cleanup(() => client.close());
      return client.post([piece(`host-${i % 40}`, `${i}`)]).catch(() => undefined);
    });
    const answers = await Promise.all(sent);
    expect(answers.some((answer) => answer?.late.includes(0))).toBe(true);
    process.kill(stopped, "SIGCONT");
    const { late } = await nginx.client.post([piece("last", "1")]);
    expect(late).toEqual([]);
    const held = [...(await nginx.held("/peek")).values()];
    expect(held).toHaveLength(2);
    expect(held[0]).toEqual(held[1]);
    expect(Object.keys(held[0])).toHaveLength(41);
  });
});

describe.skipIf(noNginx)("journal, read by NGINX when it starts", () => {
  const records = [
    encodeRecord(piece("up", "u", PIECE.upstream)),
    encodeRecord(piece("a", "1")),
    encodeRecord(piece("b", "1")),
    encodeRecord(piece("a", "2")),
    encodeRecord(piece("b", undefined)),
  ];

  it("gives the last state of each piece", async () => {
    const nginx = await start({ journal: Buffer.concat([HEADER, ...records]) });
    await expectHeld(nginx, piece("up", "u", PIECE.upstream), piece("a", "2"));
    expect(nginx.log).not.toMatch(/journal/);
  });

  it("is read after a real restart, and not when the configuration is read anew", async () => {
    const nginx = await start({ journal: Buffer.concat([HEADER, ...records]) });
    await nginx.client.post([piece("a", "3")]);
    const before = (await nginx.workers()).map(({ pid }) => pid);
    nginx.hangUp();
    await workersOtherThan(nginx, before);
    await expectHeld(nginx, piece("up", "u", PIECE.upstream), piece("a", "3"));
    await nginx.restart();
    await expectHeld(nginx, piece("up", "u", PIECE.upstream), piece("a", "2"));
    expect((await nginx.client.state()).seq).toBe(0);
  });

  it.each([1, 4, 9, 19, 21])("counts up to a record that is cut off after %i bytes", async (bytes) => {
    const torn = encodeRecord(piece("c", "1")).subarray(0, bytes);
    const nginx = await start({ journal: Buffer.concat([HEADER, ...records, torn]) });
    await expectHeld(nginx, piece("up", "u", PIECE.upstream), piece("a", "2"));
    await logged(nginx, /the journal ends before its end/);
  });

  it("counts up to a record whose checksum is wrong", async () => {
    const damaged = Buffer.from(records[3]);
    damaged[damaged.length - 1] ^= 1;
    const nginx = await start({ journal: Buffer.concat([HEADER, ...records.slice(0, 3), damaged, records[4]]) });
    await expectHeld(nginx, piece("up", "u", PIECE.upstream), piece("a", "1"), piece("b", "1"));
    await logged(nginx, /does not fit its checksum/);
  });

  it.each([
    ["garbage", Buffer.alloc(100_000, 0xff)],
    ["of another version", Buffer.from("NJKS\x02\0\0\0", "latin1")],
    ["empty", Buffer.alloc(0)],
  ])("does no harm where it is %s", async (_, journal) => {
    const nginx = await start({ journal });
    await nginx.client.post([piece("a", "1")]);
    await expectHeld(nginx, piece("a", "1"));
  });
});

describe.skipIf(noNginx)("control endpoint of NGINX", () => {
  it.each([
    ["none", undefined],
    ["a wrong one", `Bearer ${"0".repeat(64)}`],
    ["a part of it", "Bearer"],
    ["another scheme", "Basic Og=="],
  ])("refuses who shows %s as a token", async (_, authorization) => {
    const nginx = await start({ workers: 1 });
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    const body = encodeRecord(piece("a", "1"));
    expect((await nginx.ask("/state", { method: "POST", body, headers })).status).toBe(401);
    expect((await nginx.ask("/state?pieces", { headers })).status).toBe(401);
    expect((await nginx.client.state()).seq).toBe(0);
  });

  it("answers 400 to what can't be read, takes nothing of it, and stays as it was", async () => {
    const nginx = await start({ workers: 1 });
    await nginx.client.post([piece("a", "1")]);
    const good = encodeRecord(piece("b", "1"));
    const flipped = Buffer.from(good);
    flipped[10] ^= 1;
    const wrongKey = encodeRecord(piece("b\nc", "1"));
    for (const bad of [
      good.subarray(1),
      good.subarray(0, 21),
      Buffer.concat([good, flipped]),
      wrongKey,
      Buffer.alloc(64),
    ]) {
      const headers = { authorization: `Bearer ${nginx.token}` };
      const { status, body } = await nginx.ask("/state", { method: "POST", body: bad, headers });
      expect([status, JSON.parse(body).code]).toEqual([400, "STATE_RECORDS"]);
    }
    for (const generation of ["a b", "a".repeat(257)]) {
      const headers = { authorization: `Bearer ${nginx.token}`, "x-njet-generation": generation };
      expect((await nginx.ask("/state", { method: "POST", body: good, headers })).status).toBe(400);
    }
    await expectHeld(nginx, piece("a", "1"));
  });

  it("survives random bytes", async () => {
    const nginx = await start({ workers: 1 });
    const pid = (await nginx.workers())[0].pid;
    const headers = { authorization: `Bearer ${nginx.token}` };
    const good = Buffer.concat([encodeRecord(piece("a", "1")), encodeRecord(piece("b", "2"))]);
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(good);
      for (let i = 0; i <= round % 5; i++) bytes[(round * 7 + i * 13) % bytes.length] = (round * 31 + i) & 0xff;
      const { status } = await nginx.ask("/state", { method: "POST", body: bytes.subarray(0, round % 90), headers });
      expect([200, 400]).toContain(status);
    }
    expect((await nginx.workers())[0].pid).toBe(pid);
  });

  it("knows its paths and methods, and no other", async () => {
    const nginx = await start({ workers: 1 });
    const headers = { authorization: `Bearer ${nginx.token}` };
    expect((await nginx.ask("/nothing", { headers })).status).toBe(404);
    expect((await nginx.ask("/state", { method: "DELETE", headers })).status).toBe(405);
    const wrong = new ControlClient(nginx.control, "w".repeat(64));
    cleanup(() => wrong.close());
    await expect(wrong.state()).rejects.toEqual(new ControlError("STATE_TOKEN", 401, "the token is missing or wrong"));
  });
});
