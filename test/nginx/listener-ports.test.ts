import { beforeAll, describe, expect, it } from "vitest";
import { ListenerPorts } from "../../controller/proxies/nginx/listener-ports.js";
import { ownNginx } from "../../controller/proxies/nginx/make-nginx.js";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { httpPeer } from "../support/peers.js";
import { installation, noNginx } from "./installation.js";
import { ON_FREE_PORTS, startWithoutItsPorts } from "./lost-ports.js";

cleanUpAfterEach();

const FREE = { address: "127.0.0.1", port: 0 };
/** Numbers in this order, in the place of chance. */
const inOrder = (...numbers: number[]) => {
  return () => numbers.shift() ?? expect.fail("no number is left");
};
const numbers = ({ http, https }: ListenerPorts) => [http.port, https.port];

/** Free ports, as chance may give them. */
async function candidates(): Promise<[number, number, number]> {
  const [first, second] = [await ListenerPorts.choose(FREE, FREE), await ListenerPorts.choose(FREE, FREE)];
  return [first.http.port, first.https.port, second.http.port];
}

describe("the ports of the two listeners", () => {
  it("are those that were asked for by number", async () => {
    const ports = await ListenerPorts.choose({ port: 8080 }, { address: "::1", port: 8443 }, inOrder());
    expect([ports.http, ports.https]).toEqual([{ port: 8080 }, { address: "::1", port: 8443 }]);
    expect(await ports.chooseAgain([8080, 8443])).toBe(false);
    expect(numbers(ports)).toEqual([8080, 8443]);
  });

  it("are two, also where chance gives the same number twice", async () => {
    const [a, b] = await candidates();
    expect(numbers(await ListenerPorts.choose(FREE, FREE, inOrder(a, a, b)))).toEqual([a, b]);
  });

  it("are two, also where the other one was asked for by number and nobody listens there yet", async () => {
    const [a, b] = await candidates();
    expect(numbers(await ListenerPorts.choose({ port: a }, FREE, inOrder(a, b)))).toEqual([a, b]);
    expect(numbers(await ListenerPorts.choose(FREE, { port: a }, inOrder(a, b)))).toEqual([b, a]);
  });

  it("are none on which somebody listens", async () => {
    const [a, b, c] = await candidates();
    closing(await httpPeer((_request, response) => response.end(), a));
    expect(numbers(await ListenerPorts.choose(FREE, FREE, inOrder(a, b, a, c)))).toEqual([b, c]);
  });

  it("are chosen anew where somebody else has taken them, each for itself", async () => {
    const [a, b, c] = await candidates();
    const ports = await ListenerPorts.choose(FREE, FREE, inOrder(a, b, b, c));
    expect(await ports.chooseAgain([a])).toBe(true);
    expect(numbers(ports)).toEqual([c, b]);
    expect(await ports.chooseAgain([a, 1])).toBe(false);
  });
});

describe.skipIf(noNginx)("an NGINX on free ports", () => {
  beforeAll(async () => {
    await installation();
    await nativeCore();
  }, 600_000);

  it("starts on others where another program was faster to have those that were chosen", async () => {
    const { before, after, status, messages } = await startWithoutItsPorts((context) =>
      ownNginx(context, { ...ON_FREE_PORTS, binary: undefined, workers: 1 }),
    );
    expect(after.filter((port) => before.includes(port))).toEqual([]);
    expect(status).toBe(404);
    expect(messages).toContain("nginx is started with other ports: somebody else has one that was chosen");
  });
});
