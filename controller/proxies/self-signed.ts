import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** What a self-signed certificate says; times in milliseconds since the epoch. */
export interface SelfSignedOptions {
  commonName: string;
  /** DNS names of the certificate. */
  hosts: readonly string[];
  notBefore: number;
  notAfter: number;
}

export interface CertificatePair {
  /** PEM. */
  chain: string;
  /** PEM (PKCS #8). Secret. */
  key: string;
  fingerprint: string;
}

/**
 * Makes a P-256 key and an X.509 v3 certificate that is signed with it (RFC 5280, RFC 5758). Node signs and exports
 * keys as DER but builds no certificates; the few structures around them are written here.
 */
export function selfSigned(options: SelfSignedOptions): CertificatePair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(ECDSA_WITH_SHA256);
  const name = sequence(set(sequence(COMMON_NAME, tagged(0x0c, Buffer.from(options.commonName)))));
  const hosts = options.hosts.map((host) => tagged(0x82, Buffer.from(host, "latin1")));
  const extensions = [sequence(BASIC_CONSTRAINTS, octets(sequence()))];
  if (hosts.length > 0) extensions.push(sequence(ALTERNATIVE_NAMES, octets(sequence(...hosts))));
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    algorithm,
    name,
    sequence(time(options.notBefore), time(options.notAfter)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions)),
  );
  const signature = sign("sha256", body, privateKey);
  const der = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  return {
    chain: pem("CERTIFICATE", der),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    fingerprint: createHash("sha256").update(der).digest("hex"),
  };
}

const ECDSA_WITH_SHA256 = objectId("06082a8648ce3d040302");
const COMMON_NAME = objectId("0603550403");
const BASIC_CONSTRAINTS = objectId("0603551d13");
const ALTERNATIVE_NAMES = objectId("0603551d11");

function objectId(hex: string): Buffer {
  return Buffer.from(hex, "hex");
}

/** DER tag, definite length, content. */
function tagged(tag: number, content: Buffer): Buffer {
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function set(...parts: Buffer[]): Buffer {
  return tagged(0x31, Buffer.concat(parts));
}

function octets(content: Buffer): Buffer {
  return tagged(0x04, content);
}

/** A positive integer: DER wants a leading zero where the top bit is set, and no other one. */
function integer(bytes: Buffer): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  return tagged(0x02, digits[0] >= 0x80 ? Buffer.concat([Buffer.from([0]), digits]) : digits);
}

/** UTCTime up to 2049, GeneralizedTime after it (RFC 5280 4.1.2.5). */
function time(milliseconds: number): Buffer {
  const date = new Date(milliseconds);
  const digits = `${date.toISOString().slice(0, 19).replace(/[-:T]/g, "")}Z`;
  return date.getUTCFullYear() < 2050 ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits));
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
