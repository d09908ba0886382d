import type { LineSink } from "./line-sink.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

export type LogFields = Readonly<Record<string, unknown>>;

/** Writes one JSON object a line: `time`, `level`, `message` and the given fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LoggerOptions {
  sink: LineSink;
  /** Lines below this level are left out; `info` by default. */
  level?: LogLevel;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
/** Fields whose values never reach a log, whatever a caller passes. */
const SECRET_FIELD = /^(key|private_?key|password|token|secret|authorization|proxy-authorization|cookie|set-cookie)$/i;
const PEM = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

/** Values come out escaped by JSON; secrets by field name or by their PEM armour come out as `[secret]`. */
export function createLogger(options: LoggerOptions): Logger {
  const least = ORDER[options.level ?? "info"];
  const log = (level: LogLevel, message: string, fields?: LogFields): void => {
    if (ORDER[level] < least) return;
    options.sink.write(logLine(options.now(), level, message, fields));
  };
  return {
    debug: (message, fields) => log("debug", message, fields),
    info: (message, fields) => log("info", message, fields),
    warn: (message, fields) => log("warn", message, fields),
    error: (message, fields) => log("error", message, fields),
  };
}

/** A logger that writes nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };

function logLine(now: number, level: LogLevel, message: string, fields?: LogFields): string {
  const head = { time: new Date(now).toISOString(), level, message };
  try {
    // The head comes last so that no field can take the place of time, level or message.
    return JSON.stringify({ ...head, ...fields, ...head }, printable);
  } catch {
    return JSON.stringify({ ...head, fields: "[not printable]" });
  }
}

function printable(name: string, value: unknown): unknown {
  if (SECRET_FIELD.test(name)) return "[secret]";
  if (typeof value === "string" && PEM.test(value)) return "[secret]";
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Error) return { name: value.name, code: errorCode(value), message: value.message };
  return value;
}

/** The `code` of a system or library error, if it has one. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
