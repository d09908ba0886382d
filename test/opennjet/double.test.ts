import { describe, expect, it } from "vitest";
import {
  type DynamicLocation,
  type OpenNjetApi,
  RpcTimeoutError,
} from "../../controller/proxies/opennjet/api/index.js";
import type { OpenNjetDouble } from "../real/opennjet-double/index.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { driven, failure, SITE } from "./api-support.js";

cleanUpAfterEach();

const FEW_MODULES = ["http_dyn_map"];

function location(name: string): DynamicLocation {
  return { rule: "", name: `/${name}`, body: `return 200 ${name};` };
}

async function addAll(api: OpenNjetApi, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await api.locations.add(SITE, location(`l${i}`));
}

/** How many dynamic locations each worker has. */
function dynamic(double: OpenNjetDouble): number[] {
  return double.plane.workers.map(({ servers }) => servers[0].locations.filter(({ isStatic }) => !isStatic).length);
}

describe("a change that timed out", () => {
  it("comes into force later", async () => {
    const { double, api } = await driven();
    double.faults.timeouts = 1;
    expect(await failure(api.locations.add(SITE, location("a")))).toBeInstanceOf(RpcTimeoutError);
    expect(dynamic(double)).toEqual([0, 0]);
    double.plane.applyLate();
    expect(dynamic(double)).toEqual([1, 1]);
  });

  it("is lost, if that is the fault", async () => {
    const { double, api } = await driven();
    Object.assign(double.faults, { timeouts: 1, timeoutsAreLost: true });
    await failure(api.locations.add(SITE, location("a")));
    double.plane.applyLate();
    expect(dynamic(double)).toEqual([0, 0]);
  });
});

describe("a connection that breaks", () => {
  it("leaves the change in force", async () => {
    const { double, api } = await driven();
    double.faults.brokenConnections = 1;
    expect((await failure(api.locations.add(SITE, location("a")))).mayHaveApplied).toBe(true);
    expect(dynamic(double)).toEqual([1, 1]);
  });
});

describe("workers", () => {
  it("apply what the agent has taken in a moment of their own", async () => {
    const { double, api } = await driven();
    double.faults.workersWait = true;
    await api.locations.add(SITE, location("a"));
    expect(dynamic(double)).toEqual([0, 0]);
    double.plane.deliver();
    expect(dynamic(double)).toEqual([1, 1]);
  });

  it("answer by turns", async () => {
    const { double, api } = await driven();
    await api.locations.add(SITE, location("a"));
    double.plane.workers[1].servers[0].locations.pop();
    const port = double.port("0.0.0.0:80");
    const bodies = [await ask(port, { path: "/a" }), await ask(port, { path: "/a" })].map(({ body }) => body);
    expect(bodies.sort()).toEqual(["a", "none"]);
  });
});

describe("deletes at full speed", () => {
  async function deleted(modules: string[], step: (i: number) => number): Promise<OpenNjetDouble> {
    let time = 0;
    const { double, api } = await driven({ modules, now: () => time });
    await addAll(api, 1000);
    for (let i = 0; i < 1000; i++) {
      time += step(i);
      await api.locations.remove(SITE, location(`l${i}`));
    }
    return double;
  }

  it("are all accepted, and leave some locations in all workers and others in one", async () => {
    const double = await deleted(FEW_MODULES, () => 0);
    expect(dynamic(double)).toEqual([630, 441]);
    expect(double.plane.agent.servers[0].locations.length).toBe(1);
    expect(double.plane.broker.size).toBe(0);
  });

  it("leave nothing in batches of 100 with pauses of 10 ms", async () => {
    const double = await deleted(FEW_MODULES, (i) => (i % 100 === 0 ? 10 : 0));
    expect(dynamic(double)).toEqual([0, 0]);
  });

  it("leave what comes after 96 of them with every module loaded", async () => {
    const double = await deleted([...FEW_MODULES, "http_log", "http_vts", "http_dyn_limit", "proxy_pass"], () => 0);
    expect(dynamic(double)).toEqual([904, 904]);
  });
});

describe("a restart", () => {
  it("keeps what was retained, up to 1,020 objects, and what the configuration has", async () => {
    const { double, api } = await driven();
    await addAll(api, 1200);
    expect(dynamic(double)).toEqual([1200, 1200]);
    await double.reload();
    expect(dynamic(double)).toEqual([1020, 1020]);
    expect((await ask(double.port("0.0.0.0:80"), { path: "/l1019" })).body).toBe("l1019");
    expect((await ask(double.port("0.0.0.0:80"), { path: "/l1020" })).body).not.toBe("l1020");
  });

  it("brings back static locations that were removed", async () => {
    const { double, api } = await driven();
    await api.locations.remove(SITE, { rule: "", name: "/" });
    expect((await ask(double.port("0.0.0.0:80"))).status).toBe(404);
    expect((await ask(double.port("0.0.0.0:80"))).body).not.toBe("none");
    await double.restart();
    expect((await ask(double.port("0.0.0.0:80"))).body).toBe("none");
  });

  it("keeps maps, and members that were added are lost", async () => {
    const { double, api } = await driven();
    const values = [{ valueFrom: "default", valueTo: "kept" }];
    await api.maps.replace([{ keyFrom: "$ssl_server_name", keyTo: "$certificate", values }]);
    await api.upstreams.addMember("fixed", { server: "127.0.0.1:1", weight: 1 });
    await double.restart();
    expect((await api.maps.list())[0].values).toEqual(values);
    expect((await api.upstreams.members("fixed")).map(({ server }) => server)).toEqual(["127.0.0.1:9"]);
  });

  it("takes the locations of a removed server away with it", async () => {
    const { double, api } = await driven();
    const server = { addressPort: "0.0.0.0:80", serverName: "b.example.com" };
    await api.servers.add({ ...server, body: "" });
    await api.locations.add(server, location("a"));
    await api.servers.remove(server);
    expect(double.plane.broker.topics()).toEqual([]);
  });
});

describe("kill -9", () => {
  it("loses what was retained since the last save", async () => {
    const { double, api } = await driven();
    await api.locations.add(SITE, location("saved"));
    await double.reload();
    await api.locations.add(SITE, location("lost"));
    await double.kill();
    expect(dynamic(double)).toEqual([1, 1]);
    expect((await ask(double.port("0.0.0.0:80"), { path: "/saved" })).body).toBe("saved");
  });
});

describe("what is pasted", () => {
  it("closes the location with a brace, as in OpenNJet", async () => {
    const { double, api } = await driven();
    const body = "return 200 a; } location /injected { return 200 injected;";
    await api.locations.add(SITE, { rule: "", name: "/a", body });
    expect((await ask(double.port("0.0.0.0:80"), { path: "/injected" })).body).toBe("injected");
  });

  it.each([
    ["return 200 a", "ok"],
    ['return 200 "a;b{c}#d\\"";', "ok"],
    ["return 200 a;;", 'unexpected ";"'],
    ['return 200 "a"b;', 'unexpected "b"'],
    ["return 200 'a", "unexpected end of file"],
    ["zone a 1m;", "no support of dynamic"],
    ["nosuch;", "unknown directive"],
    ["return;", "invalid number of arguments"],
    ["proxy_pass http://nobody;", "host not found in upstream"],
    ["return 200 a; }", 'unexpected "}"'],
  ])("is read as configuration text: %s", async (body, wanted) => {
    const { api } = await driven();
    const answer = await api.locations.add(SITE, { rule: "", name: "/a", body }).then(
      () => "ok",
      ({ message }: Error) => message,
    );
    expect(answer).toContain(wanted);
  });
});

describe("conditional locations", () => {
  it("are tried in the order of their creation, before all others", async () => {
    const { double, api } = await driven();
    const add = (name: string, text: string) =>
      api.locations.add(SITE, { rule: "", name, body: `return 200 ${text};` });
    await api.locations.add(SITE, { rule: "=", name: "/a", body: "return 200 exact;" });
    await add("($uri ~ ^/a)", "first");
    await add("($http_host = a.example.com)", "second");
    const body = async (host: string, path: string) => (await ask(double.port("0.0.0.0:80"), { host, path })).body;
    expect(await body("a.example.com", "/a")).toBe("first");
    expect(await body("a.example.com", "/b")).toBe("second");
    expect(await body("b.example.com", "/b")).toBe("none");
    await api.locations.remove(SITE, { rule: "", name: "($uri ~ ^/a)" });
    expect(await body("a.example.com", "/a")).toBe("second");
    expect(await body("b.example.com", "/a")).toBe("exact");
  });
});
