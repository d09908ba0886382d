// Runs in a network namespace of its own: NGINX under load, and all that may happen to it, in one run. Arguments: the folder
// with the programs. Prints what was observed, as JSON.
import { definition, ingressClass, service, slice, virtualServer } from "../../kubernetes/objects.js";
import type { KubeObject } from "../../real/kube/client.js";
import { ask, keepAliveAgent } from "../../support/http-client.js";
import { roundRoutes, tlsSecret } from "./objects.js";
import { Peer, PORTS, Stage, until } from "./stage.js";
import { certificateName, Traffic, WebSocketClient } from "./traffic.js";

const HOST = "shop.example.com";
const ADDRESSES = ["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"];
/** Each is a change of a route and one of endpoints; every tenth a renewal too, every twentieth a flap. */
const ROUNDS = 2_000;
/** Rounds in which the controller is killed and started anew. */
const RESTARTS = [400, 1_200];
/** From one round to the other the controller can't reach the API server. */
const CUT = { from: 700, to: 900 };
/** The API server is killed; in the second of these rounds, the controller too while it is away. */
const CRASHES = [1_000, 1_500];

const shop: KubeObject = virtualServer("shop", {
  tls: { secret: "shop-tls" },
  upstreams: [
    {
      ...{ name: "main", service: "shop", port: 80 },
      healthCheck: { enable: true, path: "/health", interval: "100ms", fails: 1, passes: 1 },
    },
  ],
  routes: roundRoutes("main", 0),
});
/** The first peer, which is well and sick by turns, is always among them; one of the others is not. */
const addressesOf = (round: number) => ADDRESSES.filter((_, i) => i === 0 || i !== 1 + (round % 3));
const endpoints = (round: number) => slice("shop-1", "shop", addressesOf(round));
const down = 'njet_kic_upstream_peers{upstream="VirtualServer/default/shop/main",state="down"}';

const stage = await Stage.open(process.argv[2]);
try {
  const [flapping] = await Promise.all(ADDRESSES.map((address) => Peer.open(address)));
  await stage.define([definition("VirtualServer"), definition("VirtualServerRoute")]);
  await stage.admin.applyAll([
    ...[ingressClass("njet", "njet.org/ingress-controller"), tlsSecret("shop-tls", "pair 0", HOST)],
    ...[service("shop"), endpoints(0), shop],
  ]);
  stage.startController();
  await stage.says("serving");
  const { workers } = await stage.nginx();
  const sockets = await Promise.all([1, 2, 3, 4].map(() => WebSocketClient.open(HOST)));
  const plain = new Traffic(PORTS.http, { host: HOST }, 4);
  const handshakes = new Traffic(PORTS.https, { host: HOST, tls: true }, 1, 20);
  const agent = keepAliveAgent();

  const done = { routes: 0, endpoints: 0, renewals: 0, flaps: 0, restarts: 0, away: 0 };
  /** Requests that the flapping peer got while it was known to be down. */
  let strayed = 0;
  let servedWhenDown = 0;
  const acts = (round: number) =>
    until(`route ${round} acts`, async () => {
      return (await ask(PORTS.http, { host: HOST, agent })).headers["x-round"] === String(round);
    });
  const renewed = (round: number) =>
    until(`renewal ${round} acts`, async () => (await certificateName(HOST)) === `pair ${round}`);
  /** Resolves when only peers of a round are asked, and each of them is that is well. */
  const spreads = (round: number) =>
    until(`endpoints ${round} act`, async () => {
      const seen = new Set<string>();
      for (let i = 0; i < 9; i++) seen.add((await ask(PORTS.http, { host: HOST, agent })).body);
      const wanted = addressesOf(round).filter((address) => address !== flapping.address || flapping.healthy);
      return [...seen].sort().join() === wanted.join();
    });

  for (let round = 1; round <= ROUNDS; round++) {
    const isCut = round >= CUT.from && round < CUT.to;
    if (round === CUT.from) stage.relay.block();
    if (round === CUT.to) {
      stage.relay.unblock();
      done.away++;
    }
    if (CRASHES.includes(round)) {
      await stage.cluster.killApiServer();
      if (round === CRASHES[1]) {
        await stage.killController();
        stage.startController();
        await stage.says("cannot list");
        done.restarts++;
      }
      await plain.more(300);
      await stage.startApiServer();
      done.away++;
    }
    if (RESTARTS.includes(round)) {
      await stage.killController();
      stage.startController();
      done.restarts++;
    }
    const { admin } = stage;
    const renews = round % 10 === 0;
    await Promise.all([
      admin.patch(shop, { spec: { routes: roundRoutes("main", round) } }).then(() => done.routes++),
      admin.patch(endpoints(round), { endpoints: endpoints(round).endpoints }).then(() => done.endpoints++),
      ...(renews ? [admin.apply(tlsSecret("shop-tls", `pair ${round}`, HOST)).then(() => done.renewals++)] : []),
    ]);
    if (!isCut) {
      await acts(round);
      if (renews) await renewed(round);
    }
    if (round % 20 === 0) {
      if (!flapping.healthy) strayed += flapping.served - servedWhenDown;
      flapping.healthy = !flapping.healthy;
      await until("the flap is seen", async () => (await stage.metric(down)) === (flapping.healthy ? 0 : 1));
      if (!isCut) await spreads(round);
      // What was on its way to it has arrived.
      else await plain.more(50);
      servedWhenDown = flapping.served;
      done.flaps++;
    }
    if (round % 100 === 0) await Promise.all(sockets.map((socket) => socket.echoes(`round ${round}`)));
  }
  if (!flapping.healthy) strayed += flapping.served - servedWhenDown;
  await plain.stop();
  await handshakes.stop();
  await Promise.all(sockets.map((socket) => socket.echoes("at the end")));
  const now = await stage.nginx();
  for (const socket of sockets) socket.close();
  agent.destroy();
  const status = await stage.endController("SIGTERM");
  const { answered, failures } = plain;
  const tls = { answered: handshakes.answered, failures: handshakes.failures };
  const pids = now.workers.join() === workers.join();
  process.stdout.write(JSON.stringify({ done, strayed, answered, failures, tls, pids, status }));
} finally {
  await stage.close();
}
process.exit(0);
