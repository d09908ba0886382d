import { describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { MetricsPage } from "../../controller/observability/metrics-page.js";
import { MetricsServer } from "../../controller/observability/metrics-server.js";
import type { MetricsSource } from "../../controller/observability/metrics-text.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { scrape, seriesValue } from "../support/metrics-page.js";
import { RawClient, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const ANSWER: MetricsSource = {
  *write(page) {
    page.single("answer", "gauge", "the answer", 42);
    yield;
  },
};

async function serve(source: MetricsSource = ANSWER, ready = () => true): Promise<number> {
  const server = closing(new MetricsServer({ page: new MetricsPage([source], 100), logger: silentLogger, ready }));
  return (await server.listen("127.0.0.1", 0)).port;
}

describe("the port for metrics", () => {
  it("gives the page at /stats in the text format of Prometheus", async () => {
    const port = await serve();
    const { status, headers } = await ask(port, { path: "/stats?x=y" });
    expect(status).toBe(200);
    expect(headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(seriesValue(await scrape(port), "answer")).toBe(42);
  });

  it("answers HEAD with the same head and no body", async () => {
    const port = await serve();
    const [get, head] = [await ask(port, { path: "/stats" }), await ask(port, { path: "/stats", method: "HEAD" })];
    expect(head.body).toBe("");
    expect(head.headers["content-length"]).toBe(String(get.body.length));
  });

  it.each(["/", "/stats/", "/Stats", "/%73tats", "/stats/../healthz", "//stats", "/metrics"])(
    "answers 404 at %s",
    async (path) => {
      expect((await ask(await serve(), { path })).status).toBe(404);
    },
  );

  it.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])(
    "answers 405 to %s, and names what it takes",
    async (method) => {
      const { status, headers } = await ask(await serve(), { path: "/stats", method, body: "x" });
      expect(status).toBe(405);
      expect(headers.allow).toBe("GET, HEAD");
    },
  );

  it("says at /healthz that the process answers, and at /readyz whether it serves", async () => {
    let ready = false;
    const port = await serve(ANSWER, () => ready);
    expect((await ask(port, { path: "/healthz" })).status).toBe(200);
    expect((await ask(port, { path: "/readyz" })).status).toBe(503);
    ready = true;
    expect((await ask(port, { path: "/readyz" })).status).toBe(200);
  });

  it("answers 500 where a source fails, and the next time again what it can", async () => {
    let broken = true;
    const port = await serve({
      *write(page) {
        yield;
        if (broken) throw new Error("broken");
        yield* ANSWER.write(page);
      },
    });
    expect((await ask(port, { path: "/stats" })).status).toBe(500);
    broken = false;
    expect(seriesValue(await scrape(port), "answer")).toBe(42);
  });

  it.each([
    ["nonsense", "nonsense\r\n\r\n", 400],
    ["two lengths", "GET /stats HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400],
    ["a head without end", `GET /stats HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["a head that is split by a NUL", "GET /stats\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400],
  ])("refuses %s and goes on", async (_title, bytes, status) => {
    const port = await serve();
    const client = await RawClient.plain(port);
    client.write(bytes);
    expect(statuses(await client.end())).toEqual([status]);
    expect((await ask(port, { path: "/stats" })).status).toBe(200);
  });

  it("closes connections that ask for a tunnel or another protocol", async () => {
    const port = await serve();
    for (const head of [
      "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /stats HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ]) {
      const client = await RawClient.plain(port);
      client.write(head);
      expect(await client.end()).toBe("");
    }
  });

  it("is there for others while somebody holds all its connections without asking for anything", async () => {
    const port = await serve();
    const held = await Promise.all(Array.from({ length: 64 }, () => RawClient.plain(port)));
    for (const client of held) client.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    await Promise.all(held.map((client) => client.until((text) => text.endsWith("ok\n"), 20_000)));
    const answers = () => ask(port, { path: "/healthz" }).catch(() => ({ status: 0 }));
    await expect.poll(async () => (await answers()).status, { timeout: 20_000 }).toBe(200);
    for (const client of held) client.destroy();
  });

  it("is closed with every connection", async () => {
    const server = new MetricsServer({ page: new MetricsPage([], 1), logger: silentLogger, ready: () => true });
    const { port } = await server.listen("127.0.0.1", 0);
    const client = await RawClient.plain(port);
    await server.close();
    await client.end();
    await expect(RawClient.plain(port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});
