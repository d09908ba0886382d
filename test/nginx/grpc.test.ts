import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { cleanUpAfterEach, cleanup } from "../support/harness.js";
import { actionHost, keyOf, upstreamStep } from "../support/plans.js";
import { askHttp2 } from "../support/raw-http2.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "grpc.example.com";

/** An NGINX before a server of HTTP/2 on plain TCP, and the targets that the server is asked for. */
async function serve(): Promise<{ nginx: RequestNginx; targets: string[] }> {
  const targets: string[] = [];
  const server = createServer();
  server.on("stream", (stream, headers) => {
    targets.push(headers[":path"] ?? "");
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { endStream: true });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanup(() => void server.close());
  const nginx = await RequestNginx.start([
    upstreamStep("rpc", [(server.address() as AddressInfo).port], { protocol: "grpc" }),
    actionHost(HOST, { kind: "proxy", upstream: keyOf("rpc"), rewrite: { kind: "prefix", text: "/inner/" } }),
  ]);
  return { nginx, targets };
}

describe.skipIf(noNginx)("gRPC through NGINX", () => {
  it.each([
    ["/say.Hello/Hi", "/inner/say.Hello/Hi"],
    ["/a%20b?x=%20", "/inner/a%20b?x=%20"],
    ["/a%3Fb?c", "/inner/a%3Fb?c"],
    ["/a%0d%0aX:%20y", "/inner/a%0D%0AX:%20y"],
    ["/a%7fb", "/inner/a%7Fb"],
  ])("is asked for the rewritten target of %s, escaped characters included", async (path, wanted) => {
    const { nginx, targets } = await serve();
    const head: [string, string][] = [
      [":method", "POST"],
      [":scheme", "https"],
      [":path", path],
      [":authority", HOST],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
    ];
    expect(await askHttp2(nginx.https, head, "")).toMatchObject({ heads: 1, reset: false });
    expect(targets).toEqual([wanted]);
    expect(nginx.errorLog()).not.toContain("runtime error");
  });
});
