/** Certificates that are posted to the dynamic upstream API, on real NGINX. */
import { describe, expect, it } from "vitest";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { certificateStep } from "../support/plans.js";
import { servedCertificate } from "../support/raw-client.js";
import { noNginx } from "./installation.js";
import { ConfigurationNginx } from "./posted-nginx.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const SERVERS = "/configuration/servers";

function pem(name: string, host = HOST): string {
  const { chain, key } = makeCertificate(name, host);
  return `${chain}\n${key}`;
}

async function post(nginx: ConfigurationNginx, servers: object, certificates: object = {}): Promise<number> {
  return (await nginx.post(SERVERS, { servers, certificates })).status;
}

async function common(nginx: ConfigurationNginx, name: string): Promise<string> {
  return String((await servedCertificate(nginx.nginx.https, name)).subject.CN);
}

describe.skipIf(noNginx)("the dynamic upstream API: servers", () => {
  it("serves the posted certificate of a host, of a wildcard, and of all others, from the next handshake on", async () => {
    const nginx = await ConfigurationNginx.start();
    const certificates = { "1": pem("one"), "2": pem("two", "*.example.com"), "3": pem("three") };
    expect(await post(nginx, { [HOST]: "1", "*.example.com": "2" }, certificates)).toBe(201);
    expect(await common(nginx, HOST)).toBe("one");
    expect(await common(nginx, "other.example.com")).toBe("two");
    expect(await common(nginx, "example.net")).toBe("default");
    expect(await post(nginx, { _: "3" }, {})).toBe(201);
    expect(await common(nginx, "example.net")).toBe("three");
    expect(await post(nginx, {}, { "1": pem("renewed") })).toBe(201);
    for (let i = 0; i < 4; i++) expect(await common(nginx, HOST)).toBe("renewed");
  });

  it('takes a host\'s certificate away with "-1", and leaves hosts alone that were not posted', async () => {
    const nginx = await ConfigurationNginx.start();
    await post(nginx, { [HOST]: "1", "b.example.com": "1" }, { "1": pem("one") });
    expect(await post(nginx, { [HOST]: "-1" })).toBe(201);
    expect(await common(nginx, HOST)).toBe("default");
    expect(await common(nginx, "b.example.com")).toBe("one");
    await post(nginx, { "b.example.com": "-1" });
    // With its last host it has gone.
    expect(await post(nginx, { [HOST]: "1" })).toBe(400);
  });

  it("has the certificates of the controller come first", async () => {
    const nginx = await ConfigurationNginx.start();
    await post(nginx, { [HOST]: "1" }, { "1": pem("posted") });
    await nginx.nginx.apply(certificateStep(HOST, makeCertificate("own", HOST)));
    expect(await common(nginx, HOST)).toBe("own");
    await nginx.nginx.apply({ step: "remove-certificate", host: HOST });
    expect(await common(nginx, HOST)).toBe("posted");
  });

  it("never returns or logs a private key", async () => {
    const nginx = await ConfigurationNginx.start();
    const { chain, key } = makeCertificate("one", HOST);
    await post(nginx, { [HOST]: "1" }, { "1": `${key}\n${chain}` });
    const secret = key.split("\n")[2] ?? "";
    expect(secret.length).toBeGreaterThan(20);
    const { status, body } = await nginx.control(`/configuration/certs?hostname=${HOST.toUpperCase()}`);
    expect([status, body.trim()]).toEqual([200, chain.trim()]);
    await post(nginx, { [HOST]: "2" }, { "2": `${chain}\n${key.replace(secret, `${secret.slice(1)}!`)}` });
    for (const path of ["/configuration/certs", "/state?pieces", SERVERS]) {
      const text = (await nginx.control(`${path}${path.includes("?") ? "" : `?hostname=${HOST}`}`)).body;
      expect(text).not.toContain("PRIVATE");
      expect(text).not.toContain(secret);
    }
    expect(nginx.nginx.errorLog()).not.toContain(secret.slice(1));
  });

  it("refuses what can't be served with 400, says which it is, and takes nothing", async () => {
    const nginx = await ConfigurationNginx.start();
    await post(nginx, { [HOST]: "1" }, { "1": pem("good") });
    const mismatch = `${makeCertificate("one", HOST).chain}\n${makeCertificate("two", HOST).key}`;
    const good = { "2": pem("not taken") };
    const cases: [object | string, RegExp][] = [
      ["{", /no JSON/],
      ["[]", /must be an object/],
      [{ servers: { [HOST]: "2" }, certificates: { ...good, "3": mismatch } }, /certificates\["3"\]: must be PEM/],
      [{ servers: { [HOST]: "2" }, certificates: { ...good, "3": "no PEM" } }, /certificates\["3"\]: must be PEM/],
      [{ servers: { [HOST]: "2" }, certificates: { ...good, "3": makeCertificate("x", HOST).chain } }, /must be PEM/],
      [{ servers: { [HOST]: "9" }, certificates: good }, /servers\["shop\.example\.com"\]: there is no certificate/],
      [{ servers: { "a b": "2" }, certificates: good }, /servers\["a b"\]: must be a host/],
    ];
    for (const [body, why] of cases) {
      const answer = await nginx.post(SERVERS, body);
      expect([body, answer.status]).toEqual([body, 400]);
      expect(JSON.parse(answer.body).message).toMatch(why);
    }
    expect(await common(nginx, HOST)).toBe("good");
    expect((await nginx.post(SERVERS, { servers: { [HOST]: "2" } })).status).toBe(400);
  });

  it("answers 404 for a host without a certificate, and 400 without a host", async () => {
    const nginx = await ConfigurationNginx.start();
    expect((await nginx.control("/configuration/certs?hostname=nobody")).status).toBe(404);
    expect((await nginx.control("/configuration/certs")).status).toBe(400);
  });
});
