import { describe, expect, it } from "vitest";
import type { Balancing } from "../../controller/resources/fragments.js";
import { parseText, problemTexts } from "./parse-support.js";

const parseUpstream = (fields: string) =>
  parseText(`{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: sample},
    spec: {host: a.b, upstreams: [{name: app, service: app-svc, port: 80, ${fields}}]}}`);

function balancingOf(fields: string): Balancing | undefined {
  const parsed = parseUpstream(fields);
  return parsed.kind === "routing" ? parsed.fragment?.upstreams[0].balancing : undefined;
}

/** Problems as `severity code field`, the field without the place of the upstream. */
const problemsOf = (fields: string) =>
  problemTexts(parseUpstream(fields)).map((text) => text.replace("spec.upstreams[0].", ""));

const CHECK_DEFAULTS = {
  type: "http",
  tls: false,
  path: "/",
  headers: [],
  interval: 5000,
  jitter: 0,
  fails: 1,
  passes: 1,
  connectTimeout: 60_000,
  readTimeout: 60_000,
  sendTimeout: 60_000,
  grpcService: "",
  persistent: false,
};

describe("lb-method", () => {
  const uri = [{ kind: "variable", name: "uri" }];

  it.each([
    ["round_robin", { kind: "round-robin" }],
    ["least_conn", { kind: "least-conn" }],
    ["ip_hash", { kind: "ip-hash" }],
    ["random", { kind: "random" }],
    ["random two", { kind: "random-two" }],
    [" random  two least_conn ", { kind: "random-two" }],
    ["chash $arg_uu", { kind: "ring", key: [{ kind: "argument", name: "uu" }] }],
    ["chash $uri bounded", { kind: "ring", key: uri, bounded: true }],
    ["hash ${http_x_id} consistent", { kind: "nginx-ring", key: [{ kind: "header", name: "x-id" }] }],
    ["hash $uri consistent bounded", { kind: "nginx-ring", key: uri, bounded: true }],
    ["hash $uri", { kind: "maglev", key: uri }],
    ["hash $uri bounded", { kind: "maglev", key: uri, bounded: true }],
    ["maglev $uri", { kind: "maglev", key: uri }],
    ["maglev $uri bounded", { kind: "maglev", key: uri, bounded: true }],
    ["chash v1-$cookie_user$uri", { kind: "ring", key: ["v1-", { kind: "cookie", name: "user" }, ...uri] }],
  ])("%s", (method, expected) => {
    expect(balancingOf(`lb-method: '${method}'`)?.method).toEqual(expected);
    expect(problemsOf(`lb-method: '${method}'`)).toEqual([]);
  });

  it.each([
    ["fastest", "LB_METHOD_INVALID"],
    ["toString", "LB_METHOD_INVALID"],
    ["random two least_time", "LB_METHOD_INVALID"],
    ["least_conn bounded", "LB_METHOD_INVALID"],
    ["hash", "LB_METHOD_INVALID"],
    ["chash", "LB_METHOD_INVALID"],
    ["maglev", "LB_METHOD_INVALID"],
    ["chash $a $b", "LB_METHOD_INVALID"],
    ["chash $uri consistent", "LB_METHOD_INVALID"],
    ["hash $uri consistently", "LB_METHOD_INVALID"],
    ["hash $uri bounded consistent", "LB_METHOD_INVALID"],
    ["hash $uri bounded bounded", "LB_METHOD_INVALID"],
    ["chash constant", "LB_METHOD_INVALID"],
    ["chash $nope", "VARIABLE_UNKNOWN"],
    ["chash $1", "CAPTURE_UNKNOWN"],
  ])("%s is an error", (method, code) => {
    expect(problemsOf(`lb-method: '${method}'`)).toEqual([`error ${code} lb-method`]);
  });
});

describe("limits of an upstream", () => {
  it("are NGINX's where nothing is said", () => {
    expect(balancingOf("")).toEqual({ method: { kind: "round-robin" }, limits: { maxFails: 1, failTimeout: 10_000 } });
  });

  it("are read, and act", () => {
    const fields = "max-fails: 3, fail-timeout: 30s, max-conns: 100, slow-start: 1m";
    expect(balancingOf(fields)?.limits).toEqual({
      maxFails: 3,
      failTimeout: 30_000,
      maxConns: 100,
      slowStart: 60_000,
    });
    expect(problemsOf(fields)).toEqual([]);
  });

  it("of 0 mean: never out, any number, at once", () => {
    expect(balancingOf("max-fails: 0, max-conns: 0, slow-start: '0'")?.limits).toEqual({
      maxFails: 0,
      failTimeout: 10_000,
    });
  });

  it("that contradict each other are a warning", () => {
    expect(problemsOf("max-fails: 0, fail-timeout: 5s")).toEqual(["warning FIELD_NO_EFFECT fail-timeout"]);
  });

  it.each(["ip_hash", "random", "random two", "hash $uri", "hash $uri consistent", "chash $uri", "maglev $uri"])(
    "do not slow %s down at the start, as in NGINX, and a warning says so",
    (method) => {
      const fields = `lb-method: ${method}, slow-start: 30s`;
      expect(balancingOf(fields)?.limits.slowStart).toBeUndefined();
      expect(problemsOf(fields)).toEqual(["warning FIELD_NO_EFFECT slow-start"]);
    },
  );

  it.each(["round_robin", "least_conn"])("slow %s down at the start", (method) => {
    expect(balancingOf(`lb-method: ${method}, slow-start: 30s`)?.limits.slowStart).toBe(30_000);
  });

  it.each([
    ["max-fails: -1", "error NUMBER_RANGE max-fails"],
    ["max-fails: '1'", "error FIELD_TYPE max-fails"],
    ["max-conns: 1.5", "error NUMBER_RANGE max-conns"],
    ["fail-timeout: soon", "error DURATION_INVALID fail-timeout"],
    ["slow-start: 30 s", "error DURATION_INVALID slow-start"],
  ])("such as %s are errors", (fields, problem) => {
    expect(problemsOf(fields)).toEqual([problem]);
  });
});

describe("the queue of an upstream", () => {
  it("has a timeout of 60 s unless another is given", () => {
    expect(balancingOf("max-conns: 5, queue: {size: 10}")?.queue).toEqual({ size: 10, timeout: 60_000 });
    expect(balancingOf("max-conns: 5, queue: {size: 10, timeout: 5s}")?.queue).toEqual({ size: 10, timeout: 5000 });
  });

  it("has no effect without max-conns, and a warning says so", () => {
    expect(balancingOf("queue: {size: 10}")?.queue).toBeUndefined();
    expect(problemsOf("queue: {size: 10}")).toEqual(["warning FIELD_NO_EFFECT queue"]);
    expect(parseUpstream("queue: {size: 10}").problems[0].message).toContain("set max-conns");
  });

  it("needs a size", () => {
    expect(problemsOf("max-conns: 5, queue: {size: 0}")).toEqual(["error NUMBER_RANGE queue.size"]);
    expect(problemsOf("max-conns: 5, queue: {}")).toEqual(["error FIELD_REQUIRED queue.size"]);
  });
});

describe("the session cookie of an upstream", () => {
  it("is read with all of its attributes", () => {
    const fields =
      "sessionCookie: {enable: true, name: srv, path: /app, expires: 1h, domain: .a.b, httpOnly: true, secure: true, samesite: none}";
    expect(balancingOf(fields)?.sessionCookie).toEqual({
      name: "srv",
      path: "/app",
      expires: 3_600_000,
      domain: ".a.b",
      httpOnly: true,
      secure: true,
      sameSite: "None",
    });
    expect(problemsOf(fields)).toEqual([]);
  });

  it("lasts as long as the browser unless it says otherwise", () => {
    const plain = { name: "srv", httpOnly: false, secure: false };
    expect(balancingOf("sessionCookie: {enable: true, name: srv}")?.sessionCookie).toEqual(plain);
    expect(balancingOf("sessionCookie: {enable: true, name: srv, expires: max}")?.sessionCookie).toEqual({
      ...plain,
      expires: "max",
    });
  });

  it("goes with every method", () => {
    const fields = "lb-method: chash $uri, sessionCookie: {enable: true, name: srv}";
    expect(balancingOf(fields)).toMatchObject({ method: { kind: "ring" }, sessionCookie: { name: "srv" } });
    expect(problemsOf(fields)).toEqual([]);
  });

  it("that is switched off is checked, and is not there", () => {
    expect(balancingOf("sessionCookie: {enable: false, name: srv}")?.sessionCookie).toBeUndefined();
    expect(problemsOf("sessionCookie: {enable: false, name: srv}")).toEqual([]);
    expect(problemsOf("sessionCookie: {enable: false, name: 'a b'}")).toEqual([
      "error NAME_INVALID sessionCookie.name",
    ]);
  });

  it("that does not say whether it is switched on is a warning", () => {
    expect(balancingOf("sessionCookie: {name: srv}")?.sessionCookie).toBeUndefined();
    expect(problemsOf("sessionCookie: {name: srv}")).toEqual(["warning FIELD_NO_EFFECT sessionCookie"]);
  });

  it.each([
    ["name: 'a;b'", "error NAME_INVALID sessionCookie.name"],
    ["name: a, path: '/;x'", "error TEXT_INVALID sessionCookie.path"],
    ["name: a, domain: 'a b'", "error TEXT_INVALID sessionCookie.domain"],
    ["name: a, expires: soon", "error DURATION_INVALID sessionCookie.expires"],
    ["name: a, samesite: maybe", "error ENUM_INVALID sessionCookie.samesite"],
    ["name: a, samesite: none", "warning FIELD_NO_EFFECT sessionCookie.samesite"],
  ])("with %s is reported", (fields, problem) => {
    expect(problemsOf(`sessionCookie: {enable: true, ${fields}}`)).toEqual([problem]);
  });
});

describe("the health check of an upstream", () => {
  it("asks for / every 5 s, as NGINX does, where nothing is said", () => {
    expect(balancingOf("healthCheck: {enable: true}")).toEqual({
      method: { kind: "round-robin" },
      limits: { maxFails: 1, failTimeout: 10_000 },
      healthCheck: CHECK_DEFAULTS,
    });
  });

  it("is read with all of its fields", () => {
    const fields = `healthCheck: {enable: true, path: '/up?full=1', interval: 20s, jitter: 3s, fails: 5, passes: 2, port: 8080,
      tls: {enable: true}, connect-timeout: 1s, read-timeout: 2s, send-timeout: 3s, keepalive-time: 75s,
      headers: [{name: Host, value: a.b}, {name: X-Empty, value: ''}], statusMatch: '! 500-599 404', mandatory: true,
      persistent: true, panic: true}`;
    expect(problemsOf(fields)).toEqual([]);
    expect(balancingOf(fields)).toMatchObject({
      limits: { mandatory: true, panic: true },
      healthCheck: {
        ...CHECK_DEFAULTS,
        tls: true,
        path: "/up?full=1",
        port: 8080,
        headers: [
          { name: "Host", value: "a.b" },
          { name: "X-Empty", value: "" },
        ],
        interval: 20_000,
        jitter: 3000,
        fails: 5,
        passes: 2,
        connectTimeout: 1000,
        readTimeout: 2000,
        sendTimeout: 3000,
        keepaliveTime: 75_000,
        statusMatch: {
          negated: true,
          ranges: [
            { from: 500, to: 599 },
            { from: 404, to: 404 },
          ],
        },
        persistent: true,
      },
    });
  });

  it("takes the way of the upstream's requests: TLS and timeouts are the same unless it has its own", () => {
    const upstream = "tls: {enable: true}, connect-timeout: 1s, read-timeout: 2s, send-timeout: 3s";
    const own = "healthCheck: {enable: true, tls: {enable: false}, read-timeout: 4s}";
    expect(balancingOf(`${upstream}, healthCheck: {enable: true}`)?.healthCheck).toMatchObject({
      tls: true,
      connectTimeout: 1000,
      readTimeout: 2000,
      sendTimeout: 3000,
    });
    expect(balancingOf(`${upstream}, ${own}`)?.healthCheck).toMatchObject({ tls: false, readTimeout: 4000 });
  });

  it("that is switched off is checked, and is not there", () => {
    const fields = "healthCheck: {enable: false, mandatory: true, panic: true}";
    expect(balancingOf(fields)).toEqual(balancingOf(""));
    expect(problemsOf(fields)).toEqual([]);
    expect(problemsOf("healthCheck: {enable: false, interval: 0s}")).toEqual([
      "error DURATION_INVALID healthCheck.interval",
    ]);
  });

  it("that does not say whether it is switched on is a warning", () => {
    expect(problemsOf("healthCheck: {path: /up}")).toEqual(["warning FIELD_NO_EFFECT healthCheck"]);
  });

  it("may only connect", () => {
    expect(balancingOf("healthCheck: {enable: true, type: tcp}")?.healthCheck).toEqual({
      ...CHECK_DEFAULTS,
      type: "tcp",
    });
  });

  it("asks by gRPC where the upstream is of type grpc, unless it only connects", () => {
    const typeOf = (check: string) => balancingOf(`type: grpc, healthCheck: {enable: true, ${check}}`)?.healthCheck;
    expect(typeOf("grpcService: shop, grpcStatus: 12")).toMatchObject({
      type: "grpc",
      grpcService: "shop",
      grpcStatus: 12,
    });
    expect(typeOf("type: tcp")?.type).toBe("tcp");
    expect(problemsOf("type: grpc, healthCheck: {enable: true, type: http}")).toContain(
      "warning FIELD_NO_EFFECT healthCheck.type",
    );
  });

  it.each([
    ["type: tcp, path: /up", "path"],
    ["type: tcp, headers: []", "headers"],
    ["type: tcp, statusMatch: '200'", "statusMatch"],
    ["type: tcp, grpcService: a", "grpcService"],
    ["grpcService: a", "grpcService"],
    ["grpcStatus: 12", "grpcStatus"],
  ])("with %s has a field that its type does not look at, which is a warning", (fields, name) => {
    expect(problemsOf(`healthCheck: {enable: true, ${fields}}`)).toEqual([
      `warning FIELD_NO_EFFECT healthCheck.${name}`,
    ]);
  });

  it.each([
    ["persistent: true", "FIELD_CONFLICT", "persistent"],
    ["path: up", "PATH_INVALID", "path"],
    ["path: '/a b'", "PATH_INVALID", "path"],
    ["interval: 0s", "DURATION_INVALID", "interval"],
    ["fails: 0", "NUMBER_RANGE", "fails"],
    ["passes: 1001", "NUMBER_RANGE", "passes"],
    ["port: 65536", "NUMBER_RANGE", "port"],
    ["headers: [{name: 'a b', value: c}]", "HEADER_INVALID", "headers[0].name"],
    ['headers: [{name: a, value: "b\\r\\nc"}]', "HEADER_INVALID", "headers[0].value"],
    ["grpcStatus: 17", "NUMBER_RANGE", "grpcStatus"],
    ["type: udp", "ENUM_INVALID", "type"],
  ])("with %s is an error", (fields, code, name) => {
    const errors = problemsOf(`healthCheck: {enable: true, ${fields}}`).filter((text) => text.startsWith("error"));
    expect(errors).toEqual([`error ${code} healthCheck.${name}`]);
  });

  it.each([
    ["headers: [{name: A, value: é}]", "headers[0].value"],
    ["headers: [{name: A, value: a€}]", "headers[0].value"],
    ["headers: [{name: Content-Length, value: '5'}]", "headers[0].name"],
    ["headers: [{name: transfer-encoding, value: chunked}]", "headers[0].name"],
    ["headers: [{name: Connection, value: upgrade}]", "headers[0].name"],
    ["headers: [{name: Upgrade, value: h2c}]", "headers[0].name"],
    ["headers: [{name: Expect, value: 100-continue}]", "headers[0].name"],
    ["headers: [{name: Host, value: a}, {name: host, value: b}]", "headers[1].name"],
  ])("with %s is an error, because no probe would get through", (fields, name) => {
    expect(problemsOf(`healthCheck: {enable: true, ${fields}}`)).toEqual([`error HEADER_INVALID healthCheck.${name}`]);
  });

  it.each([
    ["200", false, [[200, 200]]],
    ["! 500", true, [[500, 500]]],
    ["!500", true, [[500, 500]]],
    ["200-399", false, [[200, 399]]],
    [
      "301 302  307",
      false,
      [
        [301, 301],
        [302, 302],
        [307, 307],
      ],
    ],
    [
      "! 301-302 307",
      true,
      [
        [301, 302],
        [307, 307],
      ],
    ],
  ] as const)("takes the status match %s", (text, negated, ranges) => {
    expect(balancingOf(`healthCheck: {enable: true, statusMatch: '${text}'}`)?.healthCheck?.statusMatch).toEqual({
      negated,
      ranges: ranges.map(([from, to]) => ({ from, to })),
    });
  });

  it.each(["!", "2xx", "99", "600", "399-200", "200-", "200,201", "! ! 500"])("refuses the status match %j", (text) => {
    expect(problemsOf(`healthCheck: {enable: true, statusMatch: '${text}'}`)).toEqual([
      "error STATUS_INVALID healthCheck.statusMatch",
    ]);
  });
});
