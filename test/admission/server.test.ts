import { connect } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import type { AdmissionCounters } from "../../controller/observability/admission-counters.js";
import { MetricsText } from "../../controller/observability/metrics-text.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, cleanup, eventually } from "../support/harness.js";
import { askAdmission, CERTIFICATE, parseOne, post, reviewFor, server, startAdmission } from "./admission-support.js";

cleanUpAfterEach();

const GOOD = parseOne(server("shop", "shop.example.com"));
const BROKEN = parseOne(server("shop", "shop.example.com", "", "{path: /, action: {pass: nowhere}}"));
const MIB = 1024 * 1024;

/** How many requests ended with each answer, those with none left out. */
function counted(counters: AdmissionCounters): Record<string, number> {
  const page = new MetricsText(1000);
  for (const _ of counters.write(page));
  const samples = page.take().matchAll(/^njet_kic_admission_requests_total\{answer="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...samples].map(([, answer, n]) => [answer, Number(n)] as const).filter(([, n]) => n > 0));
}

/** Begins a request whose body is to have `length` bytes; resolves when the server waits for it. */
async function begin(port: number, length: number): Promise<{ socket: TLSSocket; answer: () => string }> {
  const socket = connectTls({ host: "127.0.0.1", port, ca: CERTIFICATE.chain, servername: "webhook.example.com" });
  cleanup(() => socket.destroy());
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
  });
  socket.on("error", () => undefined);
  const head = `POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}`;
  socket.write(`${head}\r\nExpect: 100-continue\r\n\r\n`);
  await eventually(() => answer.startsWith("HTTP/1.1 100 "), 20_000);
  return { socket, answer: () => answer };
}

describe("the validating webhook", () => {
  it("answers an AdmissionReview of v1 with the uid of the request", async () => {
    const { port, counters } = await startAdmission();
    const { status, headers, body } = await post(port, reviewFor(GOOD));
    expect([status, headers["content-type"]]).toEqual([200, "application/json"]);
    expect(JSON.parse(body)).toEqual({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      response: { uid: "705ab4f5-6393-11e8-b7cc-42010a800002", allowed: true },
    });
    expect(counted(counters)).toEqual({ allowed: 1 });
  });

  it("refuses with a Status that kubectl can take apart", async () => {
    const { port, counters } = await startAdmission();
    const { allowed, status } = await askAdmission(port, reviewFor(BROKEN));
    expect(allowed).toBe(false);
    expect(status).toMatchObject({
      status: "Failure",
      code: 422,
      reason: "Invalid",
      details: {
        group: "k8s.njet.org",
        kind: "VirtualServer",
        name: "shop",
        causes: [{ reason: "UPSTREAM_UNKNOWN", field: "spec.routes[0].action.pass" }],
      },
    });
    expect(counted(counters)).toEqual({ refused: 1 });
  });

  it("knows an object that was given a name by the API server", async () => {
    const { port } = await startAdmission();
    const { status } = await askAdmission(port, reviewFor(BROKEN, { name: "" }));
    expect(status?.message).toMatch(/^VirtualServer\/default\/shop: /);
  });

  it("answers a dry run like any other request", async () => {
    const { port } = await startAdmission();
    expect((await askAdmission(port, reviewFor(BROKEN, { dryRun: true }))).allowed).toBe(false);
    expect((await askAdmission(port, reviewFor(GOOD, { dryRun: true }))).allowed).toBe(true);
  });

  it("answers 503 until the model is a whole one, so that failurePolicy decides", async () => {
    let complete = false;
    const { port, counters } = await startAdmission("", { complete: () => complete });
    expect((await post(port, reviewFor(BROKEN))).status).toBe(503);
    complete = true;
    expect((await askAdmission(port, reviewFor(BROKEN))).allowed).toBe(false);
    expect(counted(counters)).toEqual({ unavailable: 1, refused: 1 });
  });

  it("answers 500 to a defect, and goes on", async () => {
    const broken = {
      probe: () => {
        throw new Error("a defect");
      },
      problems: () => undefined,
    };
    const { port, counters } = await startAdmission("", { model: broken });
    expect((await post(port, reviewFor(GOOD))).status).toBe(500);
    expect((await post(port, reviewFor(GOOD, { operation: "DELETE" }))).status).toBe(200);
    expect(counted(counters)).toEqual({ failed: 1, passed: 1 });
  });

  it("measures the time of each answer", async () => {
    const { port, counters } = await startAdmission();
    await post(port, reviewFor(GOOD));
    const page = new MetricsText(1000);
    for (const _ of counters.write(page));
    expect(page.take()).toContain("njet_kic_admission_duration_seconds_count 1\n");
  });
});

describe("wrong requests", () => {
  const refused: [string, number, unknown, Parameters<typeof post>[2]][] = [
    ["another path", 404, "{}", { path: "/" }],
    ["another path below", 404, "{}", { path: "/validate/x" }],
    ["another method", 405, "", { method: "GET" }],
    ["another type of body", 415, "{}", { type: "text/plain" }],
    ["a type that only begins alike", 415, "{}", { type: "application/jsonp" }],
    ["no JSON", 400, "{", {}],
    ["an empty body", 400, "", {}],
    ["bytes that are no text", 400, Buffer.from([0xff, 0xfe, 0x00]), {}],
    ["JSON that is no object", 400, "[]", {}],
    ["another object", 400, { apiVersion: "v1", kind: "Pod" }, {}],
    ["an older AdmissionReview", 400, { ...reviewFor(GOOD), apiVersion: "admission.k8s.io/v1beta1" }, {}],
    ["a review without a request", 400, { ...reviewFor(GOOD), request: null }, {}],
    ["no uid", 400, reviewFor(GOOD, { uid: "" }), {}],
    ["a uid without end", 400, reviewFor(GOOD, { uid: "x".repeat(1000) }), {}],
    ["an unknown operation", 400, reviewFor(GOOD, { operation: "PATCH" }), {}],
    ["a kind that is none", 400, reviewFor(GOOD, { kind: "VirtualServer" }), {}],
    ["a name that would be another key", 400, reviewFor(GOOD, { name: "shop/../other" }), {}],
    ["a namespace that is none", 400, reviewFor(GOOD, { namespace: "a/b" }), {}],
    ["a body that is too long", 413, Buffer.alloc(4 * MIB + 1, 0x20), {}],
  ];

  for (const [what, status, body, options] of refused) {
    it(`are answered ${status}: ${what}`, async () => {
      const { port, counters } = await startAdmission();
      expect((await post(port, body, options)).status).toBe(status);
      expect(counted(counters)).toEqual({ bad: 1 });
      expect((await askAdmission(port, reviewFor(GOOD))).allowed).toBe(true);
    });
  }

  it("are answered 413 also where the body does not say how long it is", async () => {
    const { port } = await startAdmission();
    const socket = connectTls({ host: "127.0.0.1", port, ca: CERTIFICATE.chain, servername: "webhook.example.com" });
    cleanup(() => socket.destroy());
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      answer += text;
    });
    socket.on("error", () => undefined);
    socket.write(
      "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = `${MIB.toString(16)}\r\n${" ".repeat(MIB)}\r\n`;
    for (let i = 0; i < 4; i++) socket.write(chunk);
    socket.write("1\r\n \r\n");
    await eventually(() => answer.startsWith("HTTP/1.1 413 "), 20_000);
  });

  it("are read as one request with JSON that is nested as deep as its size allows", async () => {
    const { port } = await startAdmission();
    const deep = `${"[".repeat(MIB)}${"]".repeat(MIB)}`;
    const text = JSON.stringify(reviewFor(GOOD, { object: "@" })).replace('"@"', deep);
    expect([200, 400]).toContain((await post(port, text)).status);
    expect((await askAdmission(port, reviewFor(GOOD))).allowed).toBe(true);
  });

  it("are not waited for beyond a number: more at once are answered 429, with the time to ask again", async () => {
    const { port, counters } = await startAdmission("", { patience: 600_000 });
    const begun = await Promise.all(Array.from({ length: 16 }, () => begin(port, 9)));
    const { status, headers } = await post(port, reviewFor(GOOD));
    expect([status, headers["retry-after"]]).toEqual([429, "1"]);
    expect(counted(counters)).toEqual({ busy: 1 });
    for (const { socket } of begun) socket.destroy();
    await expect.poll(async () => (await post(port, reviewFor(GOOD))).status, { timeout: 8_000 }).toBe(200);
  });

  it("are answered while somebody holds all connections without asking for anything", async () => {
    const { port } = await startAdmission();
    // Only an answered review leaves its connection open.
    const review = JSON.stringify(reviewFor(GOOD));
    const head = "POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json";
    const held = Array.from({ length: 64 }, () => {
      const socket = connectTls({ host: "127.0.0.1", port, ca: CERTIFICATE.chain, servername: "webhook.example.com" });
      cleanup(() => socket.destroy());
      socket.on("error", () => undefined);
      return new Promise((resolve) => {
        socket.once("data", resolve);
        socket.write(`${head}\r\nContent-Length: ${Buffer.byteLength(review)}\r\n\r\n${review}`);
      });
    });
    await Promise.all(held);
    const answers = () => post(port, reviewFor(GOOD)).catch(() => ({ status: 0 }));
    await expect.poll(async () => (await answers()).status, { timeout: 20_000 }).toBe(200);
  });

  it("without TLS get no answer", async () => {
    const { port } = await startAdmission();
    const socket = connect({ host: "127.0.0.1", port });
    cleanup(() => socket.destroy());
    let answer = "";
    socket.on("data", (part) => {
      answer += part.toString("latin1");
    });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    socket.write("POST /validate HTTP/1.1\r\nHost: x\r\n\r\n");
    await closed;
    expect(answer).not.toContain("HTTP/");
  });
});

describe("with authorities for clients", () => {
  const client = makeCertificate("api-server");

  it("lets in who has a certificate of theirs", async () => {
    const { port } = await startAdmission("", { ca: client.chain });
    expect((await post(port, reviewFor(GOOD), { pair: client })).status).toBe(200);
  });

  it("turns away who has none, or one of somebody else", async () => {
    const { port, counters } = await startAdmission("", { ca: client.chain });
    await expect(post(port, reviewFor(GOOD))).rejects.toThrow();
    await expect(post(port, reviewFor(GOOD), { pair: makeCertificate("somebody") })).rejects.toThrow();
    expect(counted(counters)).toEqual({});
  });
});

it("closing the port lets an answer that is under way go out", async () => {
  const { port, server: admission } = await startAdmission();
  const body = JSON.stringify(reviewFor(GOOD));
  const { socket, answer } = await begin(port, body.length);
  const closed = admission.close();
  socket.write(body);
  await closed;
  await eventually(() => answer().includes('"allowed":true'), 20_000);
});

it("a certificate that is renewed is shown to the next connection", async () => {
  const { port, server: admission } = await startAdmission();
  const renewed = makeCertificate("renewed", "webhook.example.com");
  admission.use({ cert: renewed.chain, key: renewed.key });
  await expect(post(port, reviewFor(GOOD))).rejects.toThrow();
  expect((await post(port, reviewFor(GOOD), { ca: renewed.chain })).status).toBe(200);
});
