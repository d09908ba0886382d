import { X509Certificate } from "node:crypto";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import { selfSigned } from "../../controller/proxies/self-signed.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach, closing, startProxy } from "../support/harness.js";
import { echo, httpPeer } from "../support/peers.js";
import { certificateStep, planOf, proxyHost, upstreamStep } from "../support/plans.js";
import { RawClient, servedCertificate, statuses } from "../support/raw-client.js";

cleanUpAfterEach();

const HOST = "shop.example.com";

async function nameServed(port: number, servername?: string): Promise<string> {
  return (await servedCertificate(port, servername)).subject.CN as string;
}

describe("TLS", () => {
  it("serves the certificate of the exact name, then of the wildcard, then the default", async () => {
    const { https } = await startProxy(
      [
        certificateStep(HOST, makeCertificate("exact", HOST)),
        certificateStep("*.example.com", makeCertificate("wildcard", "*.example.com")),
      ],
      { defaultCertificate: makeCertificate("fallback") },
    );
    expect(await nameServed(https, HOST)).toBe("exact");
    expect(await nameServed(https, "SHOP.example.COM")).toBe("exact");
    expect(await nameServed(https, "other.example.com")).toBe("wildcard");
    expect(await nameServed(https, "a.b.example.com")).toBe("fallback");
    expect(await nameServed(https, "example.com")).toBe("fallback");
    expect(await nameServed(https)).toBe("fallback");
  });

  it("makes a default certificate where none is given", async () => {
    const { https } = await startProxy([]);
    const served = await servedCertificate(https);
    expect(served.subject.CN).toBe("default certificate");
    expect(Date.parse(served.valid_to)).toBeGreaterThan(Date.now());
  });

  it("uses a renewed certificate in the very next handshake and keeps open connections", async () => {
    const peer = closing(await httpPeer(echo));
    const { https, proxy } = await startProxy([
      certificateStep(HOST, makeCertificate("old", HOST)),
      upstreamStep("web", [peer.port]),
      proxyHost(HOST, "web"),
    ]);
    const before = await RawClient.tls(https, { servername: HOST });
    await proxy.apply(planOf(certificateStep(HOST, makeCertificate("new", HOST))));
    expect(await nameServed(https, HOST)).toBe("new");
    before.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    expect(statuses(await before.end())).toEqual([200]);
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "does not resume a %s session of a certificate that was replaced",
    async (version) => {
      const { https, proxy } = await startProxy([certificateStep(HOST, makeCertificate("old", HOST))]);
      const session = await sessionOf(https, version);
      expect(await resumes(https, session, version)).toBe(true);
      await proxy.apply(planOf(certificateStep(HOST, makeCertificate("new", HOST))));
      expect(await resumes(https, session, version)).toBe(false);
    },
  );

  it("keeps the last good certificate and says which one is bad", async () => {
    const good = makeCertificate("good", HOST);
    const { https, proxy } = await startProxy([certificateStep(HOST, good)]);
    const other = makeCertificate("other", HOST);
    for (const bad of [
      { ...other, chain: "nonsense", fingerprint: "1" },
      { ...other, key: good.key, fingerprint: "2" },
      { ...other, key: "", fingerprint: "3" },
      { ...other, chain: "", fingerprint: "4" },
    ]) {
      const { failures } = await proxy.apply(planOf(certificateStep(HOST, bad)));
      expect(failures).toMatchObject([{ kind: "certificate", piece: HOST, code: "PROXY_CERTIFICATE_INVALID" }]);
      expect(JSON.stringify(failures)).not.toContain("PRIVATE");
      expect(await nameServed(https, HOST)).toBe("good");
    }
    expect((await proxy.apply(planOf(certificateStep(HOST, other)))).failures).toEqual([]);
    expect(await nameServed(https, HOST)).toBe("other");
  });

  it("falls back to the default certificate when a certificate is removed", async () => {
    const shared = makeCertificate("shared", HOST, "b.example.com");
    const { https, proxy } = await startProxy([
      certificateStep(HOST, shared),
      certificateStep("b.example.com", shared),
    ]);
    await proxy.apply(planOf({ step: "remove-certificate", host: HOST }));
    expect(await nameServed(https, HOST)).toBe("default certificate");
    expect(await nameServed(https, "b.example.com")).toBe("shared");
  });

  it("speaks TLS 1.2 and 1.3 and nothing older, for every certificate", async () => {
    const { https } = await startProxy([certificateStep(HOST, makeCertificate("exact", HOST))]);
    for (const servername of [HOST, "unknown.example.com"]) {
      for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
        const client = await RawClient.tls(https, { servername, minVersion: version, maxVersion: version });
        expect((client.socket as TLSSocket).getProtocol()).toBe(version);
        client.destroy();
      }
      const old = { servername, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
      await expect(RawClient.tls(https, old)).rejects.toThrow();
    }
  });

  it("agrees on http/1.1 by ALPN", async () => {
    const { https } = await startProxy([]);
    const client = await RawClient.tls(https, { ALPNProtocols: ["h2", "http/1.1"] });
    expect((client.socket as TLSSocket).alpnProtocol).toBe("http/1.1");
    client.destroy();
  });

  it("tells the peer that the client came by https", async () => {
    const peer = closing(await httpPeer(echo));
    const { https } = await startProxy([upstreamStep("web", [peer.port]), proxyHost(HOST, "web")]);
    const client = await RawClient.tls(https);
    client.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`);
    const received = await client.end();
    expect(received).toContain('"x-forwarded-proto":"https"');
    expect(received).toContain(`"x-forwarded-port":"${https}"`);
  });

  it("goes on after handshakes that make no sense", async () => {
    const { https } = await startProxy([]);
    const client = await RawClient.plain(https);
    client.write("GET / HTTP/1.1\r\n\r\n");
    await client.end();
    expect(await nameServed(https)).toBe("default certificate");
  });
});

describe("self-signed certificates", () => {
  it("are well-formed X.509 with the names, times and key that were asked for", () => {
    const notBefore = Date.UTC(2026, 0, 2, 3, 4, 5);
    const notAfter = Date.UTC(2055, 6, 7, 8, 9, 10);
    const hosts = ["a.example.com", "*.example.com"];
    for (let i = 0; i < 50; i++) {
      const pair = selfSigned({ commonName: "ünïcode", hosts, notBefore, notAfter });
      const certificate = new X509Certificate(pair.chain);
      expect(certificate.subject).toBe("CN=ünïcode");
      expect(certificate.subjectAltName).toBe("DNS:a.example.com, DNS:*.example.com");
      expect(Date.parse(certificate.validFrom)).toBe(notBefore);
      expect(Date.parse(certificate.validTo)).toBe(notAfter);
      expect(certificate.ca).toBe(false);
      expect(certificate.verify(certificate.publicKey)).toBe(true);
    }
  });

  it("are long enough to need every length form of DER", () => {
    const hosts = Array.from({ length: 40 }, (_, i) => `host-${i}.example.com`);
    const { chain } = selfSigned({ commonName: "many", hosts, notBefore: 0, notAfter: 1 });
    expect(new X509Certificate(chain).subjectAltName?.split(", ")).toHaveLength(40);
  });
});

type Version = "TLSv1.2" | "TLSv1.3";

/** A session that the server gave out; with TLS 1.3 it comes after the handshake. */
function sessionOf(port: number, version: Version): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const options = { minVersion: version, maxVersion: version, servername: HOST, rejectUnauthorized: false };
    const socket = connectTls({ port, host: "127.0.0.1", ...options });
    socket.on("error", reject);
    socket.on("session", (session: Buffer) => {
      socket.destroy();
      resolve(session);
    });
  });
}

async function resumes(port: number, session: Buffer, version: Version): Promise<boolean> {
  const client = await RawClient.tls(port, { minVersion: version, maxVersion: version, servername: HOST, session });
  const reused = (client.socket as TLSSocket).isSessionReused();
  client.destroy();
  return reused;
}
