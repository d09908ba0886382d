// Runs in a network namespace of its own: NGINX under load while the API server is away, and while its controller and it
// itself die meanwhile. Arguments: the folder with the programs. Prints what was observed, as JSON.
import { definition, ingress, ingressClass, service, slice, virtualServer } from "../../kubernetes/objects.js";
import type { KubeObject } from "../../real/kube/client.js";
import { ask } from "../../support/http-client.js";
import { roundRoutes, tlsSecret } from "./objects.js";
import { isThere, Peer, PORTS, Stage, until } from "./stage.js";
import { answering, certificateName, Traffic } from "./traffic.js";

const HOST = "shop.example.com";
const ADDRESSES = ["10.1.0.1", "10.1.0.2", "10.1.0.3"];
/** Changes of a route and of endpoints before the API server goes. */
const ROUNDS = 100;

const shop = (round: number): KubeObject =>
  virtualServer("shop", { tls: { secret: "shop-tls" }, routes: roundRoutes("main", round) });
const endpoints = (...addresses: string[]) => slice("shop-1", "shop", addresses);
const roundOf = async () => Number((await ask(PORTS.http, { host: HOST })).headers["x-round"]);
const statusOf = async (host: string) => (await ask(PORTS.http, { host })).status;
/** All that an answer tells of the state in force. */
const inForce = async () => ({
  round: await roundOf(),
  peers: await answering(HOST, 12),
  certificate: await certificateName(HOST),
  late: await statusOf("late.example.com"),
  gone: await statusOf("gone.example.com"),
});

const stage = await Stage.open(process.argv[2]);
try {
  await Promise.all(ADDRESSES.map((address) => Peer.open(address)));
  await stage.define([definition("VirtualServer"), definition("VirtualServerRoute")]);
  const { admin } = stage;
  await admin.applyAll([ingressClass("njet", "njet.org/ingress-controller"), tlsSecret("shop-tls", "first", HOST)]);
  await admin.applyAll([service("shop"), service("gone"), service("late"), endpoints(...ADDRESSES), shop(0)]);
  await admin.applyAll([slice("gone-1", "gone", ADDRESSES), slice("late-1", "late", ADDRESSES), ingress("gone")]);
  stage.startController();
  await stage.says("serving");
  const first = await stage.nginx();
  const plain = new Traffic(PORTS.http, { host: HOST }, 4);
  const handshakes = new Traffic(PORTS.https, { host: HOST, tls: true }, 1, 20);

  for (let round = 1; round <= ROUNDS; round++) {
    await Promise.all([admin.apply(shop(round)), admin.apply(endpoints(...ADDRESSES.slice(0, 1 + (round % 3))))]);
    if (round % 10 === 0) await until(`change ${round} acts`, async () => (await roundOf()) === round);
  }
  await until("the endpoints act", async () => (await answering(HOST, 6)) === ADDRESSES.slice(0, 2).join(" "));
  const before = await inForce();

  // The API server is away for the controller, and objects change meanwhile.
  stage.relay.block();
  await admin.applyAll([shop(1000), endpoints(ADDRESSES[2]), tlsSecret("shop-tls", "second", HOST), ingress("late")]);
  await admin.delete(ingress("gone"));
  await plain.more(300);
  const away = await inForce();

  await stage.killController();
  await plain.more(300);
  stage.startController();
  await stage.says("nginx is running already and is taken over; its log stays where it was");
  await stage.says("cannot list");
  await plain.more(300);
  const restarted = await inForce();
  const served = await stage.metric("njet_kic_nginx_up");

  stage.relay.unblock();
  await stage.says("serving");
  await until("all that has changed meanwhile acts", async () => {
    const { round, peers, certificate, late, gone } = await inForce();
    return `${round} ${peers} ${certificate} ${late} ${gone}` === `1000 ${ADDRESSES[2]} second 200 404`;
  });
  const second = await stage.nginx();

  // The API server itself dies, and the controller with it.
  await stage.cluster.killApiServer();
  await stage.killController();
  await plain.more(300);
  stage.startController();
  await stage.says("cannot list");
  await plain.more(300);
  await plain.stop();
  await handshakes.stop();
  const third = await stage.nginx();

  // And NGINX, so that there is nobody left who knows.
  process.kill(third.master, "SIGKILL");
  await until("NGINX is there again", async () => {
    const now = await stage.nginx().catch(() => undefined);
    return now !== undefined && now.master !== third.master;
  });
  await until("it serves", async () => (await statusOf(HOST).catch(() => 0)) === 200);
  const fromJournal = await inForce();

  await stage.startApiServer();
  await stage.says("serving");
  await stage.admin.applyAll([shop(2000), endpoints(ADDRESSES[0])]);
  await until("the last change acts", async () => (await roundOf()) === 2000);
  await until("the last endpoints act", async () => (await answering(HOST, 6)) === ADDRESSES[0]);

  const { workers } = await stage.nginx();
  const status = await stage.endController("SIGTERM");
  const left = workers.filter(isThere).length;
  const pids = [second, third].every(({ workers: now }) => now.join() === first.workers.join());
  const { answered, failures } = plain;
  const tls = { answered: handshakes.answered, failures: handshakes.failures };
  const observed = { before, away, restarted, served, fromJournal, pids, answered, failures, tls, status, left };
  process.stdout.write(JSON.stringify(observed));
} finally {
  await stage.close();
}
process.exit(0);
