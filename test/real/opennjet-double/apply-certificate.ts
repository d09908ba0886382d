import { createPrivateKey, X509Certificate } from "node:crypto";
import { type CertificateInfo, DONE, type Message, type Result, refused } from "./messages.js";
import { digest, type PlaneState } from "./plane-state.js";

type CertificateMessage = Extract<Message, { about: "certificate" }>;

const SOURCE = "data:";

/** `njt_http_dyn_ssl_module.c`. */
export function applyCertificate(state: PlaneState, message: CertificateMessage): Result {
  const [listen] = message.listens;
  const [name] = message.serverNames;
  const place = `listen[${listen}] server_name[${name}]`;
  const server = state.serverOf(listen, name);
  if (!server?.tls) return refused(4, " dyn ssl update fail", [` ${place} can not find server`]);
  const { cert_info: info } = message;
  const had = digest(`${info.certificate}\n${info.certificateKey}`);
  // What is removed is not served any longer by the documents; really, nothing changes.
  if (message.type === "del") return DONE;
  if (server.hadCertificates.has(had)) return refused(11, " dyn ssl cert repeated");
  if (!isPair(info)) return refused(4, " dyn ssl update fail", [` ${place} njt_ssl_certificate error`]);
  server.hadCertificates.add(had);
  server.tls = info;
  return DONE;
}

function isPair({ certificate, certificateKey }: CertificateInfo): boolean {
  if (!certificate.startsWith(SOURCE) || !certificateKey.startsWith(SOURCE)) return false;
  try {
    const key = createPrivateKey(certificateKey.slice(SOURCE.length));
    return new X509Certificate(certificate.slice(SOURCE.length)).checkPrivateKey(key);
  } catch {
    return false;
  }
}
