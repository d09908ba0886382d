import { generateKeyPairSync } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import type { TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import { makeCertificate, WEAK } from "../support/certificates.js";
import { cleanUpAfterEach, closing } from "../support/harness.js";
import { ask } from "../support/http-client.js";
import { type Echo, echo, httpPeer } from "../support/peers.js";
import { certificateStep, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, servedCertificate, statuses } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { RequestNginx } from "./request-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function common(port: number, name?: string): Promise<string> {
  return String((await servedCertificate(port, name)).subject.CN);
}

describe.skipIf(noNginx)("TLS on NGINX", () => {
  it("serves the certificate of the exact name, then of the wildcard for one label, then the default", async () => {
    const { https } = await RequestNginx.start([
      certificateStep(HOST, makeCertificate("exact", HOST)),
      certificateStep("*.example.com", makeCertificate("wildcard", "*.example.com")),
    ]);
    expect(await common(https, HOST)).toBe("exact");
    expect(await common(https, "SHOP.example.com")).toBe("exact");
    expect(await common(https, "other.example.com")).toBe("wildcard");
    expect(await common(https, "a.b.example.com")).toBe("default");
    expect(await common(https)).toBe("default");
  });

  it("uses a renewed certificate in the very next handshake and keeps open connections", async () => {
    const peer = closing(await httpPeer(echo));
    const nginx = await RequestNginx.start([
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web"),
      certificateStep(HOST, makeCertificate("one", HOST)),
    ]);
    const open = await RawClient.tls(nginx.https, { servername: HOST });
    for (const name of ["two", "three", "one"]) {
      await nginx.apply(certificateStep(HOST, makeCertificate(name, HOST)));
      expect(await common(nginx.https, HOST)).toBe(name);
    }
    open.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    expect(statuses(await open.end())).toEqual([200]);
    await nginx.apply({ step: "remove-certificate", host: HOST });
    expect(await common(nginx.https, HOST)).toBe("default");
  });

  it("keeps the last good certificate where one is bad", async () => {
    const nginx = await RequestNginx.start([certificateStep(HOST, makeCertificate("good", HOST))]);
    const bad = certificateStep(HOST, { chain: "no certificate", key: "SECRET", fingerprint: "x" });
    await expect(nginx.apply(bad)).rejects.toThrow("PROXY_CERTIFICATE_INVALID");
    expect(await common(nginx.https, HOST)).toBe("good");
    expect(nginx.errorLog()).not.toContain("SECRET");
  });

  it("refuses a certificate that OpenSSL can read but no handshake could have, with the reason", async () => {
    const nginx = await RequestNginx.start([certificateStep(HOST, makeCertificate("good", HOST))]);
    for (const host of [HOST, "other.example.com"]) {
      await expect(nginx.apply(certificateStep(host, WEAK))).rejects.toThrow(
        /(?=.*key too small)(?=.*PROXY_CERTIFICATE_INVALID)/,
      );
    }
    expect(await common(nginx.https, HOST)).toBe("good");
    expect(await common(nginx.https, "other.example.com")).toBe("default");
  });

  it("refuses a key of another kind than its certificate, whatever pairs came before", async () => {
    const [pair, other] = [makeCertificate("good", HOST), makeCertificate("other", HOST)];
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const key = rsa.export({ type: "pkcs8", format: "pem" }).toString();
    const nginx = await RequestNginx.start([]);
    for (const before of [undefined, other, pair]) {
      if (before !== undefined) await nginx.apply(certificateStep(HOST, before));
      const mixed = certificateStep(HOST, { ...pair, key, fingerprint: `mixed ${before?.fingerprint}` });
      await expect(nginx.apply(mixed)).rejects.toThrow(/(?=.*key type)(?=.*PROXY_CERTIFICATE_INVALID)/);
    }
    expect(await common(nginx.https, HOST)).toBe("good");
  });

  it("tells the peer that the client came by https", async () => {
    const peer = closing(await httpPeer(echo));
    const { https } = await RequestNginx.start([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const seen = JSON.parse((await ask(https, { tls: true })).body) as Echo;
    expect(seen.headers).toMatchObject({ "x-forwarded-proto": "https", "x-forwarded-port": String(https) });
  });

  it("speaks HTTP/2, also with bodies that state no length, and holds them to the limit", async () => {
    const peer = closing(await httpPeer(echo));
    const { https } = await RequestNginx.start([
      upstreamStep("web", [peer.port], { clientMaxBodySize: 2000 }),
      proxyHost(HOST, "web"),
    ]);
    const client = connectHttp2(`https://127.0.0.1:${https}`, { rejectUnauthorized: false, servername: HOST });
    expect((client.socket as TLSSocket).alpnProtocol ?? "h2").toBeTruthy();
    const post = (body: string) =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        const stream = client.request({ ":method": "POST", ":path": "/x?y=1", ":authority": HOST });
        let text = "";
        let status = 0;
        stream.on("response", (headers) => {
          status = Number(headers[":status"]);
        });
        stream.on("data", (part) => {
          text += part;
        });
        stream.on("end", () => resolve({ status, body: text }));
        stream.on("error", reject);
        stream.end(body);
      });
    const small = await post("hello");
    expect(small.status).toBe(200);
    expect(JSON.parse(small.body)).toMatchObject({ target: "/x?y=1", body: "hello", headers: { host: HOST } });
    expect((await post("a".repeat(2001))).status).toBe(413);
    client.destroy();
  });
});
