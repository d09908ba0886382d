import { createHash, createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { Field } from "./field.js";
import type { SecretFragment } from "./fragments.js";

export const TLS_SECRET_TYPE = "kubernetes.io/tls";
/** The size limit of a Secret in Kubernetes. */
const MAX_PEM = 1_048_576;
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;

/**
 * Secret v1 of type kubernetes.io/tls: `tls.crt` must be a PEM chain, leaf first, and `tls.key` the key of the leaf.
 * Undefined, with an error, otherwise. No message ever holds a value of the Secret, nor an error text of the crypto
 * library. Files may use stringData instead of data.
 */
export function parseTlsSecret(object: Field): SecretFragment | undefined {
  object.warnUnknown(["apiVersion", "kind", "metadata", "data", "stringData", "type", "immutable"]);
  const chainText = readEntry(object, "tls.crt");
  const keyText = readEntry(object, "tls.key");
  if (chainText === undefined || keyText === undefined) return undefined;
  const data = object.get("data");
  const chain = readChain(chainText);
  if (chain === undefined) data.get("tls.crt").error("SECRET_INVALID", "is no PEM certificate chain");
  const key = readKey(keyText);
  if (key === undefined) data.get("tls.key").error("SECRET_INVALID", "is no unencrypted PEM private key");
  if (chain === undefined || key === undefined) return undefined;
  const leaf = chain[0];
  if (!leaf.checkPrivateKey(key)) {
    data.get("tls.key").error("SECRET_KEY_MISMATCH", "does not belong to the first certificate of tls.crt");
    return undefined;
  }
  const fragment = {
    chain: chain.map((certificate) => certificate.toString()).join(""),
    key: key.export({ type: "pkcs8", format: "pem" }).toString(),
  };
  const fingerprint = createHash("sha256").update(`${fragment.chain}\0${fragment.key}`).digest("hex");
  return { ...fragment, fingerprint, covers: (host) => covers(leaf, host) };
}

function readEntry(object: Field, name: string): string | undefined {
  const plain = object.get("stringData").get(name);
  if (plain.present) return plain.text(MAX_PEM);
  const encoded = object.get("data").get(name);
  if (!encoded.required()) return undefined;
  const text = encoded.text(2 * MAX_PEM);
  return text === undefined ? undefined : Buffer.from(text, "base64").toString("latin1");
}

function readChain(text: string): X509Certificate[] | undefined {
  const blocks = text.match(PEM_BLOCK);
  if (blocks === null) return undefined;
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return undefined;
  }
}

function readKey(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}

/** A wildcard in a certificate covers one label, so any label can stand for it. */
function covers(leaf: X509Certificate, host: string): boolean {
  return leaf.checkHost(host.replace(/^\*\./, "any-label.")) !== undefined;
}
