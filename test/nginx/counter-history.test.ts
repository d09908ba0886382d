import { describe, expect, it } from "vitest";
import { CounterHistory, type Counters } from "../../controller/proxies/nginx/counters.js";

const HOST = "shop.example.com";

/** What a worker hands in after `number` requests of 3 ms each, all for one host and peer. */
function worker(pid: number, number: number) {
  const times = {
    buckets: [number, 0, 0, 0, 0, 0, 0, 0, 0],
    seconds: number * 0.003,
    recent: number * 0.003,
    recentCount: number,
  };
  const counts = { received: number * 10, sent: number * 100, codes: [0, number, 0, 0, 0], requests: times };
  const peers = { "Ingress/default/shop/tea": { "10.0.0.1:80": { ...counts, responses: times } } };
  const queues = [{ upstream: "Ingress/default/shop/tea", length: 1, timeouts: 2, overflows: 3 }];
  return { pid, requests: number, gone: {}, hosts: { [HOST]: counts }, peers, queues };
}

function requestsOf(counters: Counters): number {
  return new Map(counters.byHost()).get(HOST)?.codes[2] ?? 0;
}

describe("counters of NGINX's workers", () => {
  it("are added up by host, peer and upstream", () => {
    const counters = new CounterHistory().take({ connections: { active: 5 }, workers: [worker(1, 10), worker(2, 30)] });
    expect([counters.requests, requestsOf(counters)]).toEqual([40, 40]);
    expect(counters.connections.active).toBe(5);
    const { counts, average } = counters.total();
    expect([counts.received, counts.sent, counts.durations.count]).toEqual([400, 4000, 40]);
    expect(average).toBeCloseTo(3);
    const [peer] = [...counters.peers()];
    expect([peer.backend, peer.counts.responses.count]).toEqual(["10.0.0.1:80", 40]);
    expect(counters.queues()).toEqual([{ upstream: "Ingress/default/shop/tea", length: 2, timeouts: 4, overflows: 6 }]);
  });

  it("do not go down when a worker dies and another one takes its place", () => {
    const history = new CounterHistory();
    history.take({ workers: [worker(1, 10), worker(2, 30)] });
    const after = history.take({ workers: [worker(1, 12), worker(3, 0)] });
    expect([after.requests, requestsOf(after)]).toEqual([42, 42]);
    const twice = history.take({ workers: [worker(4, 1)] });
    expect([twice.requests, requestsOf(twice), twice.total().counts.received]).toEqual([43, 43, 430]);
    // What waits and what was recent is of now, and of who is there.
    expect(twice.queues().map(({ length }) => length)).toEqual([1]);
  });

  it.each([undefined, null, [], "text", { workers: 7 }, { workers: [null, { hosts: [], peers: 1, codes: {} }] }])(
    "are zero in %j, which is no answer of NGINX",
    (content) => {
      const counters = new CounterHistory().take(content);
      expect([counters.requests, requestsOf(counters), counters.total().average]).toEqual([0, 0, 0]);
    },
  );
});
