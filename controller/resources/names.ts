/** Checks of single values. Each returns undefined if the value is good, else what is wrong with it. */
import type { Field } from "./field.js";
import { quote } from "./problem.js";

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const UPSTREAM_NAME = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** RFC 1123 host name of at most 253 characters, lower case, or `*.` followed by one. */
export function isHost(text: string): boolean {
  return isDomain(text.startsWith("*.") ? text.slice(2) : text) && !IPV4.test(text);
}

function isDomain(text: string): boolean {
  return text.length <= 253 && text.split(".").every((label) => LABEL.test(label));
}

export function isHeaderName(text: string): boolean {
  return TOKEN.test(text);
}

/** A host of an object: lower case, wildcard only as the first label. Reports HOST_INVALID. */
export function readHost(field: Field): string | undefined {
  const host = field.line();
  if (host === undefined) return undefined;
  if (isHost(host)) return host;
  const lower = host.toLowerCase();
  const hint = host !== lower && isHost(lower) ? "; write it in lower case" : "";
  field.error("HOST_INVALID", `${quote(host)} is no host name such as shop.example.com or *.example.com${hint}`);
  return undefined;
}

/** Name of a Service: one DNS label. */
export function readServiceName(field: Field): string | undefined {
  return readName(field, (name) => LABEL.test(name), "up to 63 lower-case letters, digits and hyphens");
}

/** Name of an object such as a Secret: a DNS subdomain (Kubernetes object names). */
export function readObjectName(field: Field): string | undefined {
  return readName(field, isDomain, "lower-case letters, digits, hyphens and dots");
}

/** Name of an upstream: an RFC 1035 label. */
export function readUpstreamName(field: Field): string | undefined {
  const form = "up to 63 lower-case letters, digits and hyphens, the first a letter";
  return readName(field, (name) => UPSTREAM_NAME.test(name), form);
}

/** Name of a port of a Service. */
export function readPortName(field: Field): string | undefined {
  return readName(field, (name) => LABEL.test(name), "up to 63 lower-case letters, digits and hyphens");
}

/** `name`, or `namespace/name`. Reports NAME_INVALID. */
export function readQualifiedName(field: Field, ownNamespace: string): { namespace: string; name: string } | undefined {
  const text = field.requiredLine();
  if (text === undefined) return undefined;
  const parts = text.split("/");
  const name = parts.at(-1)!;
  const namespace = parts.length === 2 ? parts[0] : ownNamespace;
  if (parts.length <= 2 && isDomain(name) && isDomain(namespace)) return { namespace, name };
  field.error("NAME_INVALID", `${quote(text)} must be name or namespace/name`);
  return undefined;
}

export function readPort(field: Field): number | undefined {
  return field.integer(1, 65_535);
}

function readName(field: Field, isGood: (name: string) => boolean, form: string): string | undefined {
  const name = field.requiredLine();
  if (name === undefined || isGood(name)) return name;
  field.error("NAME_INVALID", `${quote(name)} must be made of ${form}`);
  return undefined;
}
