/** Checks of single values. Each returns undefined if the value is good, else what is wrong with it. */
import type { Field } from "./field.js";
import { quote } from "./problem.js";
import { hasShape, type Shape } from "./shape.js";

const LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";
const DOMAIN = `${LABEL}(\\.${LABEL})*`;

/** One DNS label (RFC 1123). */
const LABEL_NAME: Shape = { patterns: [new RegExp(`^${LABEL}$`)], maxLength: 63 };
/** A DNS subdomain (RFC 1123). */
const DOMAIN_NAME: Shape = { patterns: [new RegExp(`^${DOMAIN}$`)], maxLength: 253 };
/** An RFC 1035 label. */
const UPSTREAM_NAME: Shape = { patterns: [/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/], maxLength: 63 };
/** A host name, lower case, or `*.` followed by one. */
const HOST: Shape = {
  patterns: [new RegExp(`^(\\*\\.)?${DOMAIN}$`)],
  not: [/^\d{1,3}(\.\d{1,3}){3}$/],
  maxLength: 253,
};
/** `name`, or `namespace/name`. */
const QUALIFIED_NAME: Shape = {
  patterns: [new RegExp(`^(${LABEL}/)?${DOMAIN}$`)],
  not: [/[^/]{254}/],
  maxLength: 317,
};
/** The same of a Service, whose name is one label. */
const SERVICE_REFERENCE: Shape = { patterns: [new RegExp(`^(${LABEL}/)?${LABEL}$`)], maxLength: 127 };
/** RFC 9110, section 5.6.2; no header or cookie has a name that is longer. */
export const TOKEN: Shape = { patterns: [/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/], maxLength: 256 };

/** A host of an object: lower case, wildcard only as the first label. Reports HOST_INVALID. */
export function readHost(field: Field): string | undefined {
  const host = field.shaped(HOST).line();
  if (host === undefined) return undefined;
  if (hasShape(host, HOST)) return host;
  const lower = host.toLowerCase();
  const hint = host !== lower && hasShape(lower, HOST) ? "; write it in lower case" : "";
  field.error("HOST_INVALID", `${quote(host)} is no host name such as shop.example.com or *.example.com${hint}`);
  return undefined;
}

/** Name of a Service: one DNS label. */
export function readServiceName(field: Field): string | undefined {
  return readName(field, LABEL_NAME, "up to 63 lower-case letters, digits and hyphens");
}

/** Name of an object such as a Secret: a DNS subdomain (Kubernetes object names). */
export function readObjectName(field: Field): string | undefined {
  return readName(field, DOMAIN_NAME, "lower-case letters, digits, hyphens and dots");
}

/** Name of an upstream: an RFC 1035 label. */
export function readUpstreamName(field: Field): string | undefined {
  const form = "up to 63 lower-case letters, digits and hyphens, the first a letter";
  return readName(field, UPSTREAM_NAME, form);
}

/** Name of a port of a Service. */
export function readPortName(field: Field): string | undefined {
  return readName(field, LABEL_NAME, "up to 63 lower-case letters, digits and hyphens");
}

/** `name`, or `namespace/name`. Reports NAME_INVALID. */
export function readQualifiedName(
  field: Field,
  ownNamespace: string,
  shape = QUALIFIED_NAME,
): { namespace: string; name: string } | undefined {
  const text = field.shaped(shape).requiredLine();
  if (text === undefined) return undefined;
  if (hasShape(text, shape)) {
    const slash = text.indexOf("/");
    return { namespace: slash < 0 ? ownNamespace : text.slice(0, slash), name: text.slice(slash + 1) };
  }
  field.error("NAME_INVALID", `${quote(text)} must be name or namespace/name`);
  return undefined;
}

/** A Service: `name`, or `namespace/name`. Reports NAME_INVALID. */
export function readServiceReference(
  field: Field,
  ownNamespace: string,
): { namespace: string; name: string } | undefined {
  return readQualifiedName(field, ownNamespace, SERVICE_REFERENCE);
}

export function readPort(field: Field): number | undefined {
  return field.integer(1, 65_535);
}

function readName(field: Field, shape: Shape, form: string): string | undefined {
  const name = field.shaped(shape).requiredLine();
  if (name === undefined || hasShape(name, shape)) return name;
  field.error("NAME_INVALID", `${quote(name)} must be made of ${form}`);
  return undefined;
}
