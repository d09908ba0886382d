import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { makeCertificate, tlsSecret } from "./certificates.js";
import { parseValue, problemTexts } from "./parse-support.js";

const one = makeCertificate("one.example.com", "*.wild.example.com");
const two = makeCertificate("two.example.com");

function fragmentOf(secret: unknown) {
  const parsed = parseValue("Secret", secret);
  return parsed.kind === "secret" ? parsed.fragment : undefined;
}

describe("a TLS Secret", () => {
  it("yields the chain, leaf first, and its key", () => {
    const fragment = fragmentOf(tlsSecret("s", { chain: one.chain + two.chain, key: one.key }));
    expect(fragment?.chain.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(new X509Certificate(fragment!.chain).subjectAltName).toContain("one.example.com");
  });

  it("has another fingerprint once it is renewed", () => {
    const renewed = makeCertificate("one.example.com");
    const before = fragmentOf(tlsSecret("s", one))?.fingerprint;
    expect(fragmentOf(tlsSecret("s", one))?.fingerprint).toBe(before);
    expect(fragmentOf(tlsSecret("s", renewed))?.fingerprint).not.toBe(before);
  });

  it.each([
    ["one.example.com", true],
    ["two.example.com", false],
    ["a.wild.example.com", true],
    ["*.wild.example.com", true],
    ["*.example.com", false],
  ])("knows whether it is made for %s", (host, covered) => {
    expect(fragmentOf(tlsSecret("s", one))?.covers(host)).toBe(covered);
  });

  it("may be written with stringData in files", () => {
    const { data: _, ...rest } = tlsSecret("s", one);
    const secret = { ...rest, stringData: { "tls.crt": one.chain, "tls.key": one.key } };
    expect(fragmentOf(secret)?.covers("one.example.com")).toBe(true);
  });

  it.each([
    ["without a key", tlsSecret("s", { chain: one.chain }), "FIELD_REQUIRED", "tls.key"],
    ["with the key of another certificate", tlsSecret("s", { ...one, key: two.key }), "SECRET_KEY_MISMATCH", "tls.key"],
    ["with a chain that is none", tlsSecret("s", { ...one, chain: "x" }), "SECRET_INVALID", "tls.crt"],
    [
      "with a damaged certificate",
      tlsSecret("s", { ...one, chain: one.chain.replace(/\n[^\n]{40}/, `\n${"A".repeat(40)}`) }),
      "SECRET_INVALID",
      "tls.crt",
    ],
    ["with a key that is none", tlsSecret("s", { ...one, key: "x" }), "SECRET_INVALID", "tls.key"],
  ])("%s is an error", (_title, secret, code, entry) => {
    expect(problemTexts(parseValue("Secret", secret))).toEqual([`error ${code} data["${entry}"]`]);
  });

  it("never shows any of its content in a problem", () => {
    const marker = "SECRET-MARKER";
    const secrets = [
      tlsSecret("s", { chain: marker, key: marker }),
      { ...tlsSecret("s", one), data: { "tls.crt": [marker], "tls.key": { [marker]: marker } } },
      { ...tlsSecret("s", one), data: marker },
      { ...tlsSecret("s", one), stringData: { "tls.crt": marker, "tls.key": marker } },
    ];
    for (const secret of secrets) {
      const { problems } = parseValue("Secret", secret);
      expect(problems.length).toBeGreaterThan(0);
      expect(JSON.stringify(problems)).not.toContain(marker);
      expect(JSON.stringify(problems)).not.toContain(Buffer.from(marker).toString("base64"));
    }
  });

  it("of another type has nothing to take and no problems", () => {
    const parsed = parseValue("Secret", { type: "Opaque", data: { "tls.crt": 7 } });
    expect(parsed).toMatchObject({ kind: "secret", isTls: false, problems: [] });
  });
});
