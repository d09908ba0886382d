import { describe, expect, it } from "vitest";
import { makeCertificate, tlsSecret } from "../resources/certificates.js";
import { changeOf, modelOf, parseYaml, removalOf, stateText } from "./model-support.js";

const shop = makeCertificate("shop.example.com");
const wild = makeCertificate("*.example.com");
const T1 = "2024-01-01T00:00:00Z";
const T2 = "2024-02-01T00:00:00Z";

const ingress = (name: string, secret: string, created: string, tlsHost = "shop.example.com") =>
  parseYaml(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: ${name}, creationTimestamp: '${created}'}
spec: {rules: [{host: ${name}.example.com}], tls: [{hosts: ['${tlsHost}'], secretName: ${secret}}]}`)[0];

const server = (name: string, tls: string, created: string, host = "shop.example.com") =>
  parseYaml(`
apiVersion: k8s.njet.org/v1
kind: VirtualServer
metadata: {name: ${name}, creationTimestamp: '${created}'}
spec: {host: ${host}, tls: ${tls}, routes: [{path: /, action: {return: {body: x}}}]}`)[0];

describe("a certificate", () => {
  it("follows the host that the object names", () => {
    const { certificates } = modelOf([ingress("a", "cert", T1), tlsSecret("cert", shop)]).snapshot();
    expect([...certificates.keys()]).toEqual(["shop.example.com"]);
    expect(certificates.get("shop.example.com")).toMatchObject({ resource: "Secret/default/cert" });
  });

  it("for a wildcard host is kept under the wildcard", () => {
    const { certificates } = modelOf([ingress("a", "cert", T1, "*.example.com"), tlsSecret("cert", wild)]).snapshot();
    expect([...certificates.keys()]).toEqual(["*.example.com"]);
  });

  it("that is made for other names is served with a warning", () => {
    const model = modelOf([server("v", "{secret: cert}", T1), tlsSecret("cert", makeCertificate("other.example.com"))]);
    expect(model.snapshot().certificates.size).toBe(1);
    expect(stateText(model, "VirtualServer", "v")).toBe(
      "Warning AddedOrUpdatedWithWarning CERTIFICATE_NAME_MISMATCH@spec.tls.secret",
    );
  });

  it("that is missing leaves the host to the default certificate, with a warning", () => {
    const model = modelOf([server("v", "{secret: cert}", T1)]);
    expect(model.snapshot().certificates.size).toBe(0);
    expect(stateText(model, "VirtualServer", "v")).toBe(
      "Warning AddedOrUpdatedWithWarning SECRET_MISSING@spec.tls.secret",
    );
  });

  it("that is bad makes the Secret Invalid and its users a Warning", () => {
    const model = modelOf([server("v", "{secret: cert}", T1), tlsSecret("cert", { ...shop, key: wild.key })]);
    expect(stateText(model, "Secret", "cert")).toBe('Invalid Rejected SECRET_KEY_MISMATCH@data["tls.key"]');
    expect(stateText(model, "VirtualServer", "v")).toBe(
      "Warning AddedOrUpdatedWithWarning SECRET_UNUSABLE@spec.tls.secret",
    );
  });

  it("is not taken from a Secret of another type", () => {
    const model = modelOf([server("v", "{secret: cert}", T1), { ...tlsSecret("cert", shop), type: "Opaque" }]);
    expect(stateText(model, "VirtualServer", "v")).toContain("SECRET_UNUSABLE");
  });

  it("is not taken from another namespace", () => {
    const model = modelOf([server("v", "{secret: cert}", T1), tlsSecret("cert", shop, "other")]);
    expect(model.snapshot().certificates.size).toBe(0);
  });

  it("of the oldest object counts where several name one host", () => {
    const objects = [ingress("a", "one", T2), ingress("b", "two", T1), tlsSecret("one", shop), tlsSecret("two", wild)];
    const model = modelOf(objects);
    expect(model.snapshot().certificates.get("shop.example.com")?.resource).toBe("Secret/default/two");
    expect(modelOf(objects.reverse()).snapshot()).toEqual(model.snapshot());
    expect(stateText(model, "Ingress", "a")).toContain("CERTIFICATE_TAKEN@spec.tls[0].secretName");
  });

  it("of a VirtualServer that lost its host is not served", () => {
    const model = modelOf([
      server("old", "{redirect: {enable: true}}", T1),
      server("young", "{secret: cert}", T2),
      tlsSecret("cert", shop),
    ]);
    expect(model.snapshot().certificates.size).toBe(0);
    const { certificates } = model.update([removalOf(server("old", "{}", T1))]);
    expect(certificates.get("shop.example.com")?.resource).toBe("Secret/default/cert");
  });
});

describe("a renewed Secret", () => {
  it("changes the certificates that are made from it and nothing else", () => {
    const objects = [server("v", "{secret: cert}", T1), ingress("a", "other", T1, "a.example.com")];
    const model = modelOf([...objects, tlsSecret("cert", shop), tlsSecret("other", wild)]);
    const change = model.update([changeOf(tlsSecret("cert", makeCertificate("shop.example.com")))]);
    expect([...change.certificates.keys()]).toEqual(["shop.example.com"]);
    expect(change.hosts.size + change.upstreams.size).toBe(0);
  });

  it("that is the same as before changes nothing", () => {
    const model = modelOf([server("v", "{secret: cert}", T1), tlsSecret("cert", shop)]);
    expect(model.update([changeOf(tlsSecret("cert", shop))]).certificates.size).toBe(0);
  });

  it("that comes late ends the warning of its users", () => {
    const model = modelOf([server("v", "{secret: cert}", T1)]);
    const change = model.update([changeOf(tlsSecret("cert", shop))]);
    expect(change.objects).toContain("VirtualServer/default/v");
    expect(stateText(model, "VirtualServer", "v")).toBe("Valid AddedOrUpdated");
  });
});
