import type { Field } from "./field.js";
import { isHeaderName, readPort } from "./names.js";
import { quote } from "./problem.js";
import { readDuration } from "./units.js";

const HEALTH_CHECK_FIELDS = [
  "enable",
  "path",
  "interval",
  "jitter",
  "fails",
  "passes",
  "port",
  "tls",
  "connect-timeout",
  "read-timeout",
  "send-timeout",
  "headers",
  "statusMatch",
  "grpcStatus",
  "grpcService",
  "mandatory",
  "persistent",
  "keepalive-time",
  "type",
];

/** `healthCheck` of an upstream (NGINX health_check directive). */
export function checkHealthCheck(field: Field): void {
  if (!field.isMap()) return;
  field.warnUnknown(HEALTH_CHECK_FIELDS);
  field.get("enable").boolean();
  checkProbePath(field.get("path"));
  readDuration(field.get("interval"), 1);
  readDuration(field.get("jitter"));
  field.get("fails").integer(1, 1000);
  field.get("passes").integer(1, 1000);
  readPort(field.get("port"));
  checkTls(field.get("tls"));
  for (const name of ["connect-timeout", "read-timeout", "send-timeout", "keepalive-time"]) {
    readDuration(field.get(name), 1);
  }
  for (const header of field.get("headers").items()) checkHeader(header);
  const match = field.get("statusMatch");
  const text = match.line();
  if (text !== undefined && !isStatusMatch(text)) {
    match.error("STATUS_INVALID", `${quote(text)} is none of the forms "200", "! 500", "200-399", "301 302 307"`);
  }
  field.get("grpcStatus").integer(0, 16);
  field.get("grpcService").line();
  const mandatory = field.get("mandatory").boolean();
  if (field.get("persistent").boolean() === true && mandatory !== true) {
    field.get("persistent").error("FIELD_CONFLICT", "needs mandatory: true");
  }
  field.get("type").choice(["http", "tcp"]);
  field.warnInactive();
}

/** Codes and ranges from 100 to 599, with a leading `!` for none of them. */
export function isStatusMatch(text: string): boolean {
  const codes = text.replace(/^!\s*/, "").trim().split(/\s+/);
  return codes.every((code) => {
    const bounds = /^([1-5]\d\d)(?:-([1-5]\d\d))?$/.exec(code);
    return bounds !== null && (bounds[2] === undefined || bounds[1] <= bounds[2]);
  });
}

function checkProbePath(field: Field): void {
  const path = field.line();
  if (path !== undefined && !/^\/[\x21-\x7e]*$/.test(path)) {
    field.error(
      "PATH_INVALID",
      `${quote(path)} must start with / and hold neither spaces nor anything outside of ASCII`,
    );
  }
}

function checkTls(field: Field): void {
  if (!field.isMap()) return;
  field.warnUnknown(["enable"]);
  field.get("enable").boolean();
}

function checkHeader(item: Field): void {
  if (!item.isRequiredMap()) return;
  item.warnUnknown(["name", "value"]);
  const name = item.get("name").requiredLine();
  if (name !== undefined && !isHeaderName(name)) {
    item.get("name").error("HEADER_INVALID", `${quote(name)} is no header name`);
  }
  const value = item.get("value");
  if (value.required() && value.value !== "") value.line();
}
