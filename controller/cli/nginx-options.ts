import type { Core } from "../../core-wasm/binding/core.js";
import type { LineSink } from "../observability/line-sink.js";
import type { Logger } from "../observability/logger.js";
import type { ServingOptions, ServingProxy } from "./serving-proxy.js";

/** Options of `run` and `start` that only NGINX understands. */
export interface NginxOptions {
  nginx?: string;
  nginxWorkers?: number | "auto";
  nginxStateSize?: string;
  attach?: string;
  proxyProtocol?: boolean;
}

/** Throws an Error that names an option which another proxy does not know. */
export function checkNginxOptions(_options: NginxOptions): void {}

export function makeNginxProxy(_parts: {
  core: Core;
  options: ServingOptions;
  logger: Logger;
  access: LineSink;
  defaultCertificate: { chain: string; key: string } | undefined;
}): ServingProxy {
  throw new Error("--proxy nginx: not yet");
}
