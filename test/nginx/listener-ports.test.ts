import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../controller/observability/logger.js";
import { ListenerPorts } from "../../controller/proxies/nginx/listener-ports.js";
import { ownNginx } from "../../controller/proxies/nginx/make-nginx.js";
import { nativeCore } from "../../controller/proxies/nginx/parts.js";
import { NginxFolder } from "../../controller/proxies/nginx/run-folder.js";
import { Supervisor } from "../../controller/proxies/nginx/supervisor.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { httpPeer } from "../support/peers.js";
import { temporaryFolder } from "./driven-nginx.js";
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

  it("are given up after 64 on which somebody listens, also where the other listener's number comes among them", async () => {
    const [a, b] = await candidates();
    closing(await httpPeer((_request, response) => response.end(), a));
    const many = inOrder(...Array(63).fill(a), b, a);
    await expect(ListenerPorts.choose({ ...FREE, port: b }, FREE, many)).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  it("are chosen anew where somebody else has taken them, each for itself", async () => {
    const [a, b, c] = await candidates();
    const ports = await ListenerPorts.choose(FREE, FREE, inOrder(a, b, b, c));
    expect(await ports.chooseAgain([a])).toBe(true);
    expect(numbers(ports)).toEqual([c, b]);
    expect(await ports.chooseAgain([a, 1])).toBe(false);
  });
});

describe("a server that can't have its ports", () => {
  /** One that says so when it is started, and ends. */
  function started(chooseAgain: (supervisor: Supervisor) => Promise<boolean>) {
    const parent = temporaryFolder();
    const binary = join(parent, "nginx.sh");
    const says = `nginx: [emerg] bind() to 127.0.0.1:20000 failed (98: Address already in use)`;
    writeFileSync(binary, `#!/bin/sh\nprintf '%s\\n' '${says}' 'nginx: [emerg] still could not bind()' >&2\nexit 1\n`);
    chmodSync(binary, 0o755);
    let starts = 0;
    const supervisor: Supervisor = new Supervisor({
      ...{ installation: { binary, env: {} }, folder: NginxFolder.stable(parent), logger: silentLogger },
      configuration: () => "",
      prepare: () => void starts++,
      ports: { chooseAgain: () => chooseAgain(supervisor) },
      client: { state: () => Promise.reject(new Error("nobody answers")) },
      onRestart: () => undefined,
    });
    return supervisor.start().then(
      () => expect.fail("it was started"),
      (error: Error) => ({ starts, message: error.message }),
    );
  }
  const REASON = "nginx does not start: bind() to 127.0.0.1:20000 failed (98: Address already in use)";

  it("is started five times, each with other ports", async () => {
    const { starts, message } = await started(async () => true);
    expect([starts, message]).toEqual([5, expect.stringContaining(REASON)]);
  });

  it("is started no more when it was told to stop while other ports were chosen", async () => {
    const { starts, message } = await started(async (supervisor) => {
      await supervisor.stop(0);
      return true;
    });
    expect([starts, message]).toEqual([1, expect.stringContaining(REASON)]);
  });

  it("ends with what it has said also where no other port is free", async () => {
    const { starts, message } = await started(() => Promise.reject(new Error("EADDRINUSE of another port")));
    expect([starts, message]).toEqual([1, expect.stringContaining(REASON)]);
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
