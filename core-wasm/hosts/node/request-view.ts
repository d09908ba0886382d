import type { IncomingMessage } from "node:http";
import type { RequestInput } from "../../binding/decision.js";

/** A request as the core sees it: raw values, and headers only when the core asks for one. */
export class RequestView implements RequestInput {
  readonly method: string;
  readonly host: string;
  readonly target: string;
  readonly protocol: string;
  readonly clientPort: number;

  constructor(
    private readonly request: IncomingMessage,
    readonly scheme: "http" | "https",
    readonly clientAddress: string,
    private readonly allowUnderscores: boolean,
  ) {
    this.method = request.method as string;
    this.target = request.url as string;
    this.protocol = request.httpVersionMinor === 1 ? "HTTP/1.1" : "HTTP/1.0";
    this.host = rawHeader(request.rawHeaders, "host") ?? "";
    this.clientPort = request.socket.remotePort ?? 0;
  }

  header(name: string): string | undefined {
    if (!this.allowUnderscores && name.includes("_")) return undefined;
    return rawHeader(this.request.rawHeaders, name);
  }
}

/** Value of a header by lower-case name; repeats joined by ", ", cookies by "; ". */
export function rawHeader(raw: readonly string[], lowerName: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    if (name.length !== lowerName.length || name.toLowerCase() !== lowerName) continue;
    value = value === undefined ? raw[i + 1] : value + (lowerName === "cookie" ? "; " : ", ") + raw[i + 1];
  }
  return value;
}
