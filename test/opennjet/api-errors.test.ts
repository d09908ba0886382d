import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { ERROR_SECTIONS } from "../../controller/errors.js";
import {
  AlreadyExistsError,
  BodyTooLargeError,
  CertificateRepeatedError,
  ConnectionLostError,
  InvalidAnswerError,
  JsonRefusedError,
  ModuleNotLoadedError,
  NotAllowedError,
  NotFoundError,
  NotReachableError,
  OpenNjetApi,
  OpenNjetApiError,
  OutOfMemoryError,
  ParameterError,
  PartlyAppliedError,
  RefusedError,
  RequestRefusedError,
  RpcTimeoutError,
  type ServerCertificate,
  ServerFailureError,
  ShuttingDownError,
  UnknownCodeError,
  UpstreamApiError,
} from "../../controller/proxies/opennjet/api/index.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { httpPeer, tcpPeer } from "../support/peers.js";
import { driven, failure, SITE } from "./api-support.js";

cleanUpAfterEach();

const LOCATION = { rule: "", name: "/a", body: "return 200 a;" } as const;

/** A client of a server that answers every request with this. */
async function answered(status: number, body: string): Promise<OpenNjetApi> {
  return clientOf((_, response) => {
    response.statusCode = status;
    response.end(body);
  });
}

async function clientOf(listener: RequestListener): Promise<OpenNjetApi> {
  const { port } = closing(await httpPeer(listener));
  return closing(new OpenNjetApi({ origin: `http://127.0.0.1:${port}` }));
}

describe("the codes of an answer, each as an error of its kind", () => {
  const result = (code: number, msg = "why") => JSON.stringify({ code, msg });

  it.each([
    [1, PartlyAppliedError, true],
    [2, OutOfMemoryError, true],
    [3, JsonRefusedError, false],
    [4, RefusedError, false],
    [5, NotAllowedError, false],
    [8, AlreadyExistsError, false],
    [10, ParameterError, false],
    [11, CertificateRepeatedError, false],
    [12, NotFoundError, false],
    [-1, ModuleNotLoadedError, false],
    [-2, ShuttingDownError, false],
    [77, UnknownCodeError, true],
  ])("%i", async (code, kind, mayHaveApplied) => {
    const api = await answered(200, result(code));
    const error = await failure(api.locations.add(SITE, LOCATION));
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({
      answerCode: code,
      status: 200,
      method: "POST",
      path: "/api/v1/dyn_loc",
      mayHaveApplied,
      message: "POST /api/v1/dyn_loc: why",
    });
  });

  it.each([
    [400, result(4, "invalid parameter:x!"), RequestRefusedError, false],
    [400, result(4, "json parser error!"), JsonRefusedError, false],
    [400, result(400), RequestRefusedError, false],
    [404, result(404, "not found error"), NotFoundError, false],
    [413, "<html>413</html>", BodyTooLargeError, false],
    [500, result(500, "rpc timeout"), RpcTimeoutError, true],
    [500, result(500, "server error"), ServerFailureError, true],
    [502, "<html>502</html>", ServerFailureError, true],
    [405, "", RequestRefusedError, false],
    [302, "", InvalidAnswerError, true],
  ])("HTTP %i with %s", async (status, body, kind, mayHaveApplied) => {
    const api = await answered(status, body);
    const error = await failure(api.locations.remove(SITE, LOCATION));
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ status, mayHaveApplied, method: "PUT" });
  });

  it("of health checks are those of that module", async () => {
    const wanted: [number, number, unknown][] = [
      [404, 2, NotFoundError],
      [400, 4, ParameterError],
      [400, 9, JsonRefusedError],
      [405, 11, RequestRefusedError],
      [500, 7, ServerFailureError],
      [500, 16, ParameterError],
    ];
    for (const [status, code, kind] of wanted) {
      const api = await answered(status, result(code));
      expect(await failure(api.health.remove("http", "u")), String(code)).toBeInstanceOf(kind);
    }
  });

  it("have the codes of ERRORS.md, each another one", async () => {
    const entries = ERROR_SECTIONS.find(({ title }) => title.includes("OpenNJet's APIs"))?.entries ?? {};
    const kinds = [
      AlreadyExistsError,
      BodyTooLargeError,
      CertificateRepeatedError,
      ConnectionLostError,
      InvalidAnswerError,
      JsonRefusedError,
      ModuleNotLoadedError,
      NotAllowedError,
      NotFoundError,
      NotReachableError,
      OutOfMemoryError,
      ParameterError,
      PartlyAppliedError,
      RefusedError,
      RequestRefusedError,
      RpcTimeoutError,
      ServerFailureError,
      ShuttingDownError,
      UnknownCodeError,
      UpstreamApiError,
    ];
    const errors = kinds.map((Kind) => new Kind("why", { method: "PUT", path: "/", status: 0 }));
    expect(errors.map(({ code }) => code).sort()).toEqual(Object.keys(entries).sort());
    for (const [i, error] of errors.entries()) {
      expect(error).toBeInstanceOf(OpenNjetApiError);
      expect(error.name).toBe(kinds[i].name);
    }
  });
});

describe("an answer that is none of the API", () => {
  const wrong = [
    "",
    "ok",
    "[]",
    "null",
    "{}",
    '"success"',
    '{"code":"0","msg":"success."}',
    '{"code":0.5,"msg":"success."}',
    '{"msg":"success."}',
    '{"code":0',
    '{"__proto__":{"code":0}}',
  ];

  it.each(wrong)("is an error of its own, never a success: %s", async (body) => {
    const api = await answered(200, body);
    const error = await failure(api.locations.add(SITE, LOCATION));
    expect(error).toBeInstanceOf(InvalidAnswerError);
    expect(error.mayHaveApplied).toBe(true);
  });

  it("can't have changed anything where nothing was to be changed", async () => {
    const api = await answered(200, "{}");
    const error = await failure(api.maps.list());
    expect(error).toBeInstanceOf(InvalidAnswerError);
    expect(error.mayHaveApplied).toBe(false);
  });

  it("is told with the place where it is wrong", async () => {
    const api = await answered(
      200,
      '{"maps":[{"keyFrom":"$a","keyTo":"$b","values":[{"valueFrom":1,"valueTo":"x"}]}]}',
    );
    expect((await failure(api.maps.list())).message).toContain("maps[0].values[0].valueFrom is no text");
  });

  it("has no success with the status of a failure", async () => {
    const api = await answered(503, '{"code":0,"msg":"success."}');
    expect(await failure(api.locations.add(SITE, LOCATION))).toBeInstanceOf(InvalidAnswerError);
  });

  it("is refused where it is no HTTP", async () => {
    const peer = closing(await tcpPeer((socket) => socket.end("SSH-2.0-none\r\n\r\n")));
    const api = closing(new OpenNjetApi({ origin: `http://127.0.0.1:${peer.port}` }));
    expect(await failure(api.modules())).toBeInstanceOf(InvalidAnswerError);
  });
});

describe("a connection", () => {
  it("that can't be made has changed nothing", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const api = closing(new OpenNjetApi({ origin: `http://127.0.0.1:${port}` }));
    const error = await failure(api.locations.add(SITE, LOCATION));
    expect(error).toBeInstanceOf(NotReachableError);
    expect(error.mayHaveApplied).toBe(false);
  });

  it("that ends before the answer may have changed something, and the request is not repeated", async () => {
    let requests = 0;
    const api = await clientOf((request) => {
      requests++;
      request.socket.destroy();
    });
    const error = await failure(api.maps.replace([]));
    expect(error).toBeInstanceOf(ConnectionLostError);
    expect(error.mayHaveApplied).toBe(true);
    expect(requests).toBe(1);
  });

  it("that ends in the middle of the answer may have changed something", async () => {
    const api = await clientOf((_, response) => {
      response.setHeader("Content-Length", "100");
      response.write('{"code":0,');
      setImmediate(() => response.destroy());
    });
    expect(await failure(api.maps.replace([]))).toBeInstanceOf(ConnectionLostError);
  });

  it("without an answer in time may have changed something", async () => {
    const { port } = closing(await httpPeer(() => undefined));
    const api = new OpenNjetApi({ origin: `http://127.0.0.1:${port}`, timeoutMs: 50 });
    const error = await failure(api.maps.replace([]));
    expect(error).toBeInstanceOf(ConnectionLostError);
    expect(error.mayHaveApplied).toBe(true);
  });

  it("is kept for the next call", async () => {
    const peer = closing(await httpPeer((_, response) => response.end("[]")));
    const api = closing(new OpenNjetApi({ origin: `http://127.0.0.1:${peer.port}` }));
    for (let i = 0; i < 40; i++) await api.modules();
    expect(peer.accepted()).toBeLessThanOrEqual(4);
  });

  it("is not made for a client that was closed", async () => {
    const { double } = await driven();
    const api = new OpenNjetApi({ origin: double.origin });
    await api.close();
    const error = await failure(api.locations.add(SITE, LOCATION));
    expect(error).toBeInstanceOf(NotReachableError);
    expect(double.requests).toEqual([]);
  });
});

describe("a body", () => {
  it("of more bytes than OpenNJet reads is not sent", async () => {
    const { double, api } = await driven({ mostBody: 100_000_000 });
    const empty = { ...LOCATION, body: "" };
    const frame = Buffer.byteLength(
      JSON.stringify({
        type: "add",
        addr_port: SITE.addressPort,
        server_name: SITE.serverName,
        locations: [{ location_rule: "", location_name: "/a", location_body: "" }],
      }),
    );
    // Bytes count, not characters.
    const fits = `# ${"é".repeat((5_242_880 - frame - 2) / 2)}`;
    expect(Buffer.byteLength(fits) + frame).toBeGreaterThan(5_242_870);
    await api.locations.add(SITE, { ...empty, body: fits });
    expect(double.requests.length).toBe(1);
    const error = await failure(api.locations.add(SITE, { ...empty, body: `${fits}éé` }));
    expect(error).toBeInstanceOf(BodyTooLargeError);
    expect(error.mayHaveApplied).toBe(false);
    expect(double.requests.length).toBe(1);
  });

  it("of a map of more than 1 MB is refused by the control server", async () => {
    const { double, api } = await driven();
    const values = Array.from({ length: 20_000 }, (_, i) => ({
      valueFrom: `host-${i}.example.com`,
      valueTo: "/certificates/of/that/host.pem",
    }));
    const error = await failure(api.maps.replace([{ keyFrom: "$ssl_server_name", keyTo: "$certificate", values }]));
    expect(error).toBeInstanceOf(BodyTooLargeError);
    expect(error.status).toBe(413);
    expect(double.plane.agent.maps[0].values.length).toBe(1);
  });
});

describe("no message", () => {
  const { chain, key } = makeCertificate("secret.example.com", "secret.example.com");
  const certificate: ServerCertificate = {
    listens: ["0.0.0.0:443"],
    serverNames: ["_"],
    type: "ecc",
    certificate: chain,
    key,
  };
  const lines = key.split("\n").filter((line) => line.length > 20 && !line.startsWith("-----"));

  it.each([
    ["the whole key", `cannot load "data:${key}"`],
    ["its lines, without their frame", `unknown directive "${lines[0]}" in x:3`],
    ["half a line", `unexpected ${lines[0].slice(10, 40)}`],
    ["a key that is cut off", `cannot load "data:${key.slice(0, 90)}`],
  ])("has what OpenNJet quotes of a certificate: %s", async (_, msg) => {
    const api = await answered(200, JSON.stringify({ code: 4, msg, data: [msg] }));
    for (const call of [
      () => api.certificates.add(certificate),
      () => api.servers.add({ ...SITE, body: `ssl_certificate_key "data:${key}";` }),
    ]) {
      const error = await failure(call());
      const told = [error.message, error.stack, JSON.stringify(error), String(error.cause)].join("\n");
      for (const line of lines) {
        for (let at = 0; at + 12 <= line.length; at++) expect(told).not.toContain(line.slice(at, at + 12));
      }
    }
  });

  it("has what is no JSON in an answer with secrets", async () => {
    const api = await answered(500, `failed: ${key}`);
    expect((await failure(api.certificates.add(certificate))).message).not.toContain(lines[0]);
  });

  it("has a value of the key-value store", async () => {
    const api = await answered(500, "value correct-horse-battery is too long");
    const error = await failure(api.keyValue.set("key", "correct-horse-battery"));
    expect(error.message).toContain("too long");
    expect(error.message).not.toContain("battery");
  });

  it("has line ends or control characters, or no end", async () => {
    const api = await answered(200, JSON.stringify({ code: 4, msg: `a\nb\u001b[31m\u2028${"x".repeat(100_000)}` }));
    const { message } = await failure(api.locations.add(SITE, LOCATION));
    expect(message).toMatch(/^POST \/api\/v1\/dyn_loc: a b \[31m x+ \.\.\.$/);
    expect(message.length).toBeLessThan(1200);
  });
});

describe("the names of the API of members", () => {
  it("are errors with their words", async () => {
    const { api } = await driven();
    const codes: [Promise<unknown>, string, number][] = [
      [api.upstreams.members("nobody"), "UpstreamNotFound", 404],
      [api.upstreams.removeMember("fixed", 77), "UpStreamServerNotFound", 404],
      [api.upstreams.addMember("fixed", { server: "no-port", weight: 1 }), "UpstreamBadAddress", 400],
      // A field of the wrong type is no JSON to it.
      [api.upstreams.changeMember("fixed", 0, { weight: "1" as unknown as number }), "JsonError", 415],
    ];
    for (const [call, answerCode, status] of codes) {
      const error = await failure(call);
      expect(error).toBeInstanceOf(UpstreamApiError);
      expect(error).toMatchObject({ answerCode, status, mayHaveApplied: false });
    }
  });

  it("say UnknownError where the agent did not answer in time", async () => {
    const { double, api } = await driven();
    double.faults.timeouts = 1;
    const error = await failure(api.upstreams.addMember("fixed", { server: "127.0.0.1:1", weight: 1 }));
    expect(error).toBeInstanceOf(RpcTimeoutError);
    expect(error).toMatchObject({ answerCode: "UnknownError", mayHaveApplied: true });
  });

  it.each(["", ".", "..", "a/b", "a\nb"])("are not sent where a path can't carry them: %j", async (name) => {
    const { api } = await driven();
    expect(
      await failure(
        new Promise((_, reject) =>
          Promise.resolve()
            .then(() => api.upstreams.members(name))
            .catch(reject),
        ),
      ),
    ).toBeInstanceOf(ParameterError);
  });
});
