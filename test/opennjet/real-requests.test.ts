import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RequestNginx } from "../nginx/request-nginx.js";
import { runCleanups } from "../support/harness.js";
import { echo, httpPeer, type Peer } from "../support/peers.js";
import { proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, statuses } from "../support/raw-client.js";
import { noOpenNjet, OPENNJET } from "./real-installation.js";

const HOST = "shop.example.com";

/** What OpenNJet does otherwise than NGINX; all else is asked by the tests of requests on NGINX, run over OpenNJet. */
describe.skipIf(noOpenNjet)("requests on OpenNJet", () => {
  let opennjet: RequestNginx;
  let peer: Peer;
  const targets: string[] = [];

  beforeAll(async () => {
    peer = await httpPeer((request, response) => {
      targets.push(`${request.method} ${request.url}`);
      return echo(request, response);
    });
    opennjet = await RequestNginx.start([upstreamStep("u", [peer.port]), proxyHost(HOST, "u")], { flavour: OPENNJET });
  }, 120_000);
  afterAll(async () => {
    await runCleanups();
    await peer?.close();
  });

  it("refuse CONNECT, and take what follows on the connection as a request of its own", async () => {
    targets.length = 0;
    const client = await RawClient.plain(opennjet.http);
    client.write(`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
    client.write(`GET /next HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    expect(statuses(await client.end(10_000))).toEqual([405, 200]);
    expect(targets).toEqual(["GET /next"]);
  });

  it("never take the body of a refused CONNECT for a request", async () => {
    targets.length = 0;
    const body = `GET /hidden HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
    const client = await RawClient.plain(opennjet.http);
    client.write(`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    client.write(`GET /next HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    expect(statuses(await client.end(10_000))).toEqual([405, 200]);
    expect(targets).toEqual(["GET /next"]);
  });
});
