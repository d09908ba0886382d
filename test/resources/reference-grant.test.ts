import { describe, expect, it } from "vitest";
import { parseText, problemTexts } from "./parse-support.js";

const FROM = "{group: k8s.njet.org, kind: VirtualServer, namespace: shop}";
const TO = "{group: '', kind: Secret, name: wildcard}";

const grant = (from: string, to: string, more = "", version = "v1") =>
  parseText(`{apiVersion: gateway.networking.k8s.io/${version}, kind: ReferenceGrant,
    metadata: {name: sample}, spec: {from: ${from}, to: ${to}${more}}}`);

describe("a ReferenceGrant", () => {
  it.each(["v1", "v1beta1"])("of %s says who may refer to what of its namespace", (version) => {
    const parsed = grant(`[${FROM}]`, `[${TO}, {group: '', kind: Service}]`, "", version);
    expect(parsed.problems).toEqual([]);
    expect(parsed).toMatchObject({
      kind: "grant",
      fragment: {
        namespace: "default",
        from: [{ group: "k8s.njet.org", kind: "VirtualServer", namespace: "shop" }],
        to: [
          { group: "", kind: "Secret", name: "wildcard" },
          { group: "", kind: "Service" },
        ],
      },
    });
  });

  it("of an older version is not read", () => {
    expect(problemTexts(grant(`[${FROM}]`, `[${TO}]`, "", "v1alpha2"))).toEqual(["error API_VERSION apiVersion"]);
  });

  it("for kinds that mean nothing here is right all the same", () => {
    const httpRoute = "{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}";
    const role = "{group: rbac.authorization.k8s.io, kind: Role, name: 'system:Reader'}";
    expect(grant(`[${httpRoute}]`, `[${TO}, ${role}]`).problems).toEqual([]);
  });

  it.each([
    ["no list", "[]", `[${TO}]`, "FIELD_REQUIRED spec.from"],
    ["no target", `[${FROM}]`, "[]", "FIELD_REQUIRED spec.to"],
    ["a missing group", "[{kind: VirtualServer, namespace: shop}]", `[${TO}]`, "FIELD_REQUIRED spec.from[0].group"],
    ["a missing kind", `[${FROM}]`, "[{group: ''}]", "FIELD_REQUIRED spec.to[0].kind"],
    [
      "a group with a version",
      "[{group: k8s.njet.org/v1, kind: VirtualServer, namespace: shop}]",
      `[${TO}]`,
      "NAME_INVALID spec.from[0].group",
    ],
    [
      "every namespace at once",
      "[{group: k8s.njet.org, kind: VirtualServer, namespace: '*'}]",
      `[${TO}]`,
      "NAME_INVALID spec.from[0].namespace",
    ],
    [
      "a missing namespace",
      "[{group: k8s.njet.org, kind: VirtualServer}]",
      `[${TO}]`,
      "FIELD_REQUIRED spec.from[0].namespace",
    ],
    ["an empty name", `[${FROM}]`, "[{group: '', kind: Secret, name: ''}]", "NAME_INVALID spec.to[0].name"],
    ["a name that is null", `[${FROM}]`, "[{group: '', kind: Secret, name: null}]", "FIELD_REQUIRED spec.to[0].name"],
    ["a pattern for a name", `[${FROM}]`, "[{group: '', kind: Secret, name: '*'}]", "NAME_INVALID spec.to[0].name"],
    ["a name that is mistyped", `[${FROM}]`, "[{group: '', kind: Secret, nmae: x}]", "FIELD_UNKNOWN spec.to[0].nmae"],
    [
      "a limit that is not known",
      `[{selector: {}, ${FROM.slice(1)}]`,
      `[${TO}]`,
      "FIELD_UNKNOWN spec.from[0].selector",
    ],
    ["more than 16 entries", `[${Array(17).fill(FROM).join(", ")}]`, `[${TO}]`, "LIMIT_EXCEEDED spec.from"],
    ["no spec that is a map", "7", "8", "FIELD_TYPE spec.from"],
  ])("with %s grants nothing", (_what, from, to, problem) => {
    const parsed = grant(from, to);
    expect(problemTexts(parsed)).toContain(`error ${problem}`);
    expect("fragment" in parsed && parsed.fragment).toBeUndefined();
  });

  it("grants nothing as a whole where one of its entries is wrong", () => {
    const parsed = grant(`[${FROM}]`, `[${TO}, {group: '', kind: Service, name: a/b}]`);
    expect(problemTexts(parsed)).toEqual(["error NAME_INVALID spec.to[1].name"]);
    expect("fragment" in parsed && parsed.fragment).toBeUndefined();
  });
});

describe("an object of another namespace is named", () => {
  const certificatesOf = (text: string) => {
    const parsed = parseText(text);
    if (parsed.kind !== "routing") throw new Error(parsed.kind);
    return [parsed.problems, parsed.fragment?.certificates];
  };
  const server = (secret: string) => `{apiVersion: k8s.njet.org/v1, kind: VirtualServer, metadata: {name: sample},
    spec: {host: a.b, tls: {secret: ${secret}}, routes: [{path: /, action: {return: {body: x}}}]}}`;
  const ingress = (annotation: string) => `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: sample,
    annotations: {${annotation}}}, spec: {rules: [{host: a.b}], tls: [{secretName: pair}]}}`;

  it("by tls.secret of a VirtualServer", () => {
    const reference = {
      from: { kind: "VirtualServer", namespace: "default" },
      to: { kind: "Secret", namespace: "certificates", name: "pair" },
    };
    expect(certificatesOf(server("certificates/pair"))).toEqual([
      [],
      [{ host: "a.b", secret: "certificates/pair", reference, path: "spec.tls.secret" }],
    ]);
    expect(certificatesOf(server("default/pair"))).toEqual(certificatesOf(server("pair")));
  });

  it.each(["njet.org/tls-cert-namespace", "projectcontour.io/tls-cert-namespace"])(
    "by the annotation %s of an Ingress, whose secretName can't hold a namespace",
    (name) => {
      const reference = {
        from: { kind: "Ingress", namespace: "default" },
        to: { kind: "Secret", namespace: "certificates", name: "pair" },
      };
      expect(certificatesOf(ingress(`${name}: certificates`))).toEqual([
        [],
        [{ host: "a.b", secret: "certificates/pair", reference, path: "spec.tls[0].secretName" }],
      ]);
    },
  );

  it("and an annotation that is no namespace is a warning: the Secret is one of the own namespace", () => {
    const [problems, certificates] = certificatesOf(ingress("njet.org/tls-cert-namespace: a/b"));
    expect(problems).toMatchObject([{ code: "ANNOTATION_INVALID", severity: "warning" }]);
    expect(certificates).toEqual(certificatesOf(ingress(""))[1]);
  });

  it.each(["a/b/c", "/b", "a/", "A/b", "../b"])("but not as %s", (name) => {
    expect(problemTexts(parseText(server(`'${name}'`)))).toEqual(["error NAME_INVALID spec.tls.secret"]);
  });
});
