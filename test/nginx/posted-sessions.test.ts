/** Sessions and canaries of posted backends, on real NGINX. */
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { httpPeer } from "../support/peers.js";
import { noNginx } from "./installation.js";
import { type Backend, ConfigurationNginx, cookieOf, endpointsOf, namedPeer } from "./posted-nginx.js";

cleanUpAfterEach();

const NAME = "shop-web-80";
const CANARY = "shop-canary-80";
const SECOND = "shop-second-80";

function sticky(mode: "balanced" | "persistent", cookie: Record<string, unknown> = {}) {
  return { sessionAffinityConfig: { name: "cookie", mode, cookieSessionAffinity: { name: "SID", ...cookie } } };
}

async function named(...names: string[]): Promise<number[]> {
  return Promise.all(names.map(async (name) => (await namedPeer(name)).port));
}

/** Asks with the cookie of an answer that had one. */
async function session(nginx: ConfigurationNginx, headers: Record<string, string> = {}) {
  const first = await nginx.ask(NAME, { headers });
  const Cookie = cookieOf(first) ?? "";
  return { body: first.body, headers: { Cookie }, first };
}

describe.skipIf(noNginx)("the dynamic upstream API: session cookies", () => {
  for (const mode of ["balanced", "persistent"] as const) {
    it(`leads a client back to its peer in every worker (${mode})`, async () => {
      const nginx = await ConfigurationNginx.start();
      await nginx.backends({ name: NAME, endpoints: endpointsOf(...(await named("a", "b", "c"))), ...sticky(mode) });
      const seen = new Set<string>();
      for (let i = 0; i < 12; i++) {
        const { body, headers } = await session(nginx);
        seen.add(body);
        expect(headers.Cookie).toMatch(/^SID=[0-9a-f]{8}\.[0-9a-f]{16}$/);
        expect(await nginx.asked(4, NAME, { headers })).toEqual(Array(4).fill(body));
        expect(cookieOf(await nginx.ask(NAME, { headers }))).toBeUndefined();
      }
      expect(seen.size).toBeGreaterThan(1);
    });
  }

  it("keeps persistent sessions with their peers while others come and go, and begins anew where the peer has left", async () => {
    const ports = await named("a", "b", "c", "d", "e");
    const nginx = await ConfigurationNginx.start();
    const post = (...some: number[]) =>
      nginx.backends({ name: NAME, endpoints: endpointsOf(...some), ...sticky("persistent") });
    await post(...ports.slice(0, 2));
    const sessions = await Promise.all([1, 2, 3, 4].map(() => session(nginx)));
    await post(...ports);
    for (const { body, headers } of sessions) expect((await nginx.ask(NAME, { headers })).body).toBe(body);
    await post(...ports.slice(2));
    for (const { headers } of sessions) {
      const moved = await nginx.ask(NAME, { headers });
      expect(["c", "d", "e"]).toContain(moved.body);
      const again = { headers: { Cookie: cookieOf(moved) ?? "" } };
      expect((await nginx.ask(NAME, again)).body).toBe(moved.body);
    }
  });

  it("writes the cookie with the attributes that were asked for, beside cookies of the peer", async () => {
    const peer = closing(
      await httpPeer((_, response) => {
        response.setHeader("Set-Cookie", "own=1");
        response.end("a");
      }),
    );
    const nginx = await ConfigurationNginx.start();
    const attributes = {
      ...{ expires: "60", maxage: 30, path: "/shop", domain: "example.com", secure: true, samesite: "Lax" },
      locations: { "shop.example.com": ["/by-name"] },
    };
    const backend = { name: NAME, endpoints: endpointsOf(peer) };
    await nginx.backends({ ...backend, ...sticky("balanced", attributes) });
    const cookies = (await nginx.ask(NAME)).headers["set-cookie"] ?? [];
    expect(cookies).toHaveLength(2);
    expect(cookies).toContain("own=1");
    expect(cookies.find((one) => one.startsWith("SID="))).toMatch(
      /^SID=\S+; Expires=[^;]+ GMT; Max-Age=30; Domain=example\.com; Path=\/shop; Secure; HttpOnly; SameSite=Lax$/,
    );
    await nginx.backends({ ...backend, ...sticky("balanced", { locations: { "*.example.com": ["/other"] } }) });
    expect((await nginx.ask(NAME)).headers["set-cookie"]).toEqual(["own=1"]);
  });

  it("a peer that fails makes the session move only where change_on_failure says so", async () => {
    const [alive = 0] = await named("alive");
    const broken = closing(await httpPeer((request) => request.socket.destroy()));
    const nginx = await ConfigurationNginx.start();
    for (const moves of [false, true]) {
      const backend: Backend = { name: NAME, ...sticky("persistent", { change_on_failure: moves }) };
      await nginx.backends({ ...backend, endpoints: endpointsOf(broken) });
      // Its cookie comes with the failure: this is the session of the broken peer.
      const Cookie = cookieOf(await nginx.ask(NAME)) ?? "";
      expect(Cookie).not.toBe("");
      await nginx.backends({ ...backend, endpoints: endpointsOf(broken, alive) });
      const answer = await nginx.ask(NAME, { headers: { Cookie } });
      expect([moves, answer.body, cookieOf(answer) !== undefined]).toEqual([moves, "alive", moves]);
      if (moves) expect(cookieOf(answer)).not.toBe(Cookie);
    }
  });

  it("takes a cookie that it did not write for none", async () => {
    const nginx = await ConfigurationNginx.start();
    await nginx.backends({ name: NAME, endpoints: endpointsOf(...(await named("a"))), ...sticky("persistent") });
    for (const value of ["", "x", "1655.23.4|abc", `${"f".repeat(5000)}`, "zzzzzzzz.00"]) {
      const answer = await nginx.ask(NAME, { headers: { Cookie: `SID=${value}` } });
      expect([value.length, answer.body, cookieOf(answer) !== undefined]).toEqual([value.length, "a", true]);
    }
  });
});

describe.skipIf(noNginx)("the dynamic upstream API: canaries", () => {
  async function withCanaries(
    policies: Record<string, Record<string, unknown>>,
    primary: Record<string, unknown> = {},
  ): Promise<ConfigurationNginx> {
    const nginx = await ConfigurationNginx.start();
    const backends: Backend[] = [];
    for (const [name, trafficShapingPolicy] of Object.entries(policies)) {
      const endpoints = endpointsOf(...(await named(name)));
      backends.push({ name, noServer: true, endpoints, trafficShapingPolicy });
    }
    const endpoints = endpointsOf(...(await named("primary")));
    backends.push({ name: NAME, endpoints, alternativeBackends: Object.keys(policies), ...primary });
    await nginx.backends(...backends);
    return nginx;
  }

  it("goes to a canary by header, header value, header pattern and cookie", async () => {
    const nginx = await withCanaries({ [CANARY]: { header: "X-Try" } });
    const body = async (headers: Record<string, string>) => (await nginx.ask(NAME, { headers })).body;
    expect(await body({ "X-Try": "always" })).toBe(CANARY);
    expect(await body({ "X-Try": "never" })).toBe("primary");
    expect(await body({ "X-Try": "perhaps" })).toBe("primary");
    expect(await body({})).toBe("primary");

    const other = await withCanaries({
      [CANARY]: { header: "X-Try", headerValue: "beta" },
      [SECOND]: { header: "X-Region", headerPattern: "^eu-(west|north)$", cookie: "second" },
    });
    const answer = async (headers: Record<string, string>) => (await other.ask(NAME, { headers })).body;
    expect(await answer({ "X-Try": "beta" })).toBe(CANARY);
    expect(await answer({ "X-Try": "always" })).toBe("primary");
    expect(await answer({ "X-Region": "eu-west" })).toBe(SECOND);
    expect(await answer({ "X-Region": "eu-west-1" })).toBe("primary");
    expect(await answer({ Cookie: "second=always" })).toBe(SECOND);
    expect(await answer({ Cookie: "second=never" })).toBe("primary");
  });

  it("says which alternative it was in $proxy_alternative_upstream_name", async () => {
    const nginx = await withCanaries({ [CANARY]: { cookie: "try" } });
    const answer = await nginx.ask(NAME, { headers: { Cookie: "try=always" } });
    expect(answer.headers["x-alternative"]).toBe(CANARY);
    expect((await nginx.ask(NAME)).headers["x-alternative"]).toBeUndefined();
  });

  it("honours every canary, not only the first one, each with its own share", async () => {
    const nginx = await withCanaries({
      [CANARY]: { weight: 30 },
      [SECOND]: { weight: 500, weightTotal: 1000 },
    });
    const bodies = await nginx.asked(400, NAME);
    const count = (name: string) => bodies.filter((one) => one === name).length;
    // Six standard deviations.
    expect(Math.abs(count(CANARY) - 120)).toBeLessThan(55);
    expect(Math.abs(count(SECOND) - 200)).toBeLessThan(60);
    expect(count(CANARY) + count(SECOND) + count("primary")).toBe(400);
  });

  it("a weight of 0 gets nobody, one that is its total everybody", async () => {
    const none = await withCanaries({ [CANARY]: { weight: 0 } });
    expect(await none.asked(20, NAME)).toEqual(Array(20).fill("primary"));
    const all = await withCanaries({ [CANARY]: { weight: 100 } });
    expect(await all.asked(20, NAME)).toEqual(Array(20).fill(CANARY));
  });

  it("a choice is sticky where the backend has session affinity", async () => {
    const nginx = await withCanaries({ [CANARY]: { weight: 50 } }, sticky("balanced"));
    const seen = new Set<string>();
    for (let i = 0; i < 16; i++) {
      const { body, headers } = await session(nginx);
      seen.add(body);
      expect(await nginx.asked(5, NAME, { headers })).toEqual(Array(5).fill(body));
    }
    expect([...seen].sort()).toEqual(["primary", CANARY].sort());
  });

  it("passes over alternatives that nobody has posted and those without endpoints", async () => {
    const nginx = await ConfigurationNginx.start();
    const endpoints = endpointsOf(...(await named("primary")));
    const empty = { name: CANARY, endpoints: [], trafficShapingPolicy: { weight: 100 } };
    await nginx.backends({ name: NAME, endpoints, alternativeBackends: [SECOND, CANARY] }, empty);
    expect(await nginx.asked(6, NAME)).toEqual(Array(6).fill("primary"));
  });
});
