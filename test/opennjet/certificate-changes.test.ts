/** Which calls, of those that change something, a change of a certificate is in the carrier locations, as the table of changes of the OpenNJet KIC has it: dynamic map. */
import { readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ingress, service, tlsSecret } from "../cli/objects.js";
import { until } from "../nginx/driven-nginx.js";
import { makeCertificate } from "../support/certificates.js";
import { cleanUpAfterEach } from "../support/harness.js";
import { controlledLocations } from "./controlled-locations.js";
import { longHost } from "./long-host.js";

cleanUpAfterEach();

const HOST = "shop.example.com";
const A = makeCertificate("A", HOST);
const B = makeCertificate("B", HOST);
const OTHERS = { chain: "/default.crt", key: "/default.key" };
const MAP = "/api/v1/config/http_dyn_map";

/** A shop that OpenNJet serves without a certificate. */
async function shop(mostHosts?: number) {
  const made = await controlledLocations({ mostHosts, others: OTHERS });
  const set = async (...yaml: string[]) => expect(await made.set(...yaml)).toEqual([]);
  await set(service("one", "127.0.0.1", 9000), tlsSecret("pair", A), ingress("shop", HOST, "one"));
  await until("the map is in step", () => made.certificates.settled);
  made.calls();
  return { ...made, set, change: made.set };
}

describe("A change of certificates in the carrier locations", () => {
  it("is one call of the dynamic map API and no other, where a host gets a certificate", async () => {
    const { set, calls, maps, files } = await shop();
    await set(ingress("shop", HOST, "one", "pair"));
    expect(calls()).toEqual([`PUT ${MAP}`]);
    const [path = ""] = files();
    const { $njet_certificate: chain, $njet_certificate_key: key } = await maps();
    expect(chain).toEqual({ default: OTHERS.chain, [HOST]: path });
    expect(key).toEqual({ default: OTHERS.key, [HOST]: path });
    expect(readFileSync(path, "utf8")).toContain(A.chain.trim());
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("is one call of the dynamic map API and no other, where a host loses its certificate", async () => {
    const { set, calls, maps, files } = await shop();
    await set(ingress("shop", HOST, "one", "pair"));
    calls();
    await set(ingress("shop", HOST, "one"));
    expect(calls()).toEqual([`PUT ${MAP}`]);
    expect((await maps()).$njet_certificate).toEqual({ default: OTHERS.chain });
    // For workers that take the map later.
    expect(files()).toHaveLength(1);
  });

  it("changes nothing by any call where a certificate is renewed, and back: it is in the file that the map names", async () => {
    const { set, calls, maps, files } = await shop();
    await set(ingress("shop", HOST, "one", "pair"));
    const before = await maps();
    for (const pair of [B, A]) {
      await set(tlsSecret("pair", pair));
      expect(calls()).toEqual([]);
      expect(files()).toHaveLength(1);
      expect(readFileSync(files()[0] ?? "", "utf8")).toContain(pair.chain.trim());
    }
    expect(await maps()).toEqual(before);
  });

  it("is refused on its object where the map has all hosts that it can have, and the others have theirs", async () => {
    const { set, change, calls, maps, problems } = await shop(2);
    const host = (letter: string) => `${letter}.example.com`;
    const [first, second] = ["first", "second"].map((name) => makeCertificate(name, host("a"), host("b"), host("c")));
    const withTls = (letter: string) => ingress(letter, host(letter), "one", "pair");
    await set(tlsSecret("pair", first), withTls("a"), withTls("b"));
    calls();
    const refused = await change(withTls("c"));
    expect(refused).toMatchObject([{ kind: "certificate", piece: host("c"), code: "PROXY_CERTIFICATES_FULL" }]);
    expect(problems("c")).toMatchObject([{ code: "PROXY_CERTIFICATES_FULL", severity: "warning" }]);
    expect(problems("c")?.[0]?.message).toContain("use the carrier core");
    expect(problems("a")).toEqual([]);
    expect(Object.keys((await maps()).$njet_certificate).sort()).toEqual([host("a"), host("b"), "default"]);
    // A renewal needs no room.
    await set(tlsSecret("other", second), ingress("a", host("a"), "one", "other"));
  });

  it("takes names of 253 characters, and wildcards of as many", async () => {
    const { set, calls, maps } = await shop();
    const hosts = [longHost("a"), `*.${longHost("b").slice(2)}`];
    await set(...hosts.map((host, i) => ingress(`shop-${i}`, `"${host}"`, "one", "pair")));
    expect(calls().filter((call) => call.startsWith("PUT"))).toEqual([`PUT ${MAP}`]);
    const names = Object.keys((await maps()).$njet_certificate);
    expect(names).toHaveLength(3);
    expect(names).toContain(hosts[0]);
  });

  it("is in force where one host takes the place of another, and the map has as many as before", async () => {
    const { set, maps, files } = await shop();
    await set(ingress("shop", HOST, "one", "pair"));
    await set(ingress("shop", longHost("a"), "one", "pair"));
    const { $njet_certificate: chain, $njet_certificate_key: key } = await maps();
    const path = chain[longHost("a")];
    expect(files()).toContain(path);
    expect(chain).toEqual({ default: OTHERS.chain, [longHost("a")]: path });
    expect(key).toEqual({ default: OTHERS.key, [longHost("a")]: path });
  });
});
