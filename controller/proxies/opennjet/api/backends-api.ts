/**
 * The dynamic upstream API of the Lua balancer: `POST /configuration/backends` and its like. Ours and the one that OpenNJet
 * brings along speak it; ours answers what was taken, the other one 201 whatever it got.
 */
import { isOk, readAnswer } from "./answer.js";
import {
  InvalidAnswerError,
  NotFoundError,
  type OpenNjetApiError,
  RequestRefusedError,
  ServerFailureError,
} from "./errors.js";
import { redact } from "./redact.js";
import { list, members, number, object, optional, type Reader, text } from "./shape.js";
import { type Answer, type Call, failed, Transport } from "./transport.js";

export interface BackendEndpoint {
  address: string;
  /** Digits. */
  port: string;
}

/** A backend: what a location names by `$proxy_upstream_name`. Fields are those of the API. */
export interface Backend {
  name: string;
  port?: number | string;
  endpoints: BackendEndpoint[];
  "load-balance"?: "round_robin" | "ewma";
  upstreamHashByConfig?: {
    "upstream-hash-by": string;
    "upstream-hash-by-subset"?: boolean;
    "upstream-hash-by-subset-size"?: number;
  };
  sessionAffinityConfig?: {
    name: "" | "cookie";
    mode?: "balanced" | "persistent";
    cookieSessionAffinity?: CookieAffinity;
  };
  noServer?: boolean;
  sslPassthrough?: boolean;
  trafficShapingPolicy?: TrafficShaping;
  alternativeBackends?: string[];
}

export interface CookieAffinity {
  name: string;
  expires?: string;
  maxage?: string;
  /** Paths by host. */
  locations?: Record<string, string[]>;
  secure?: boolean;
  path?: string;
  domain?: string;
  samesite?: string;
  conditional_samesite_none?: boolean;
  change_on_failure?: boolean;
}

export interface TrafficShaping {
  weight: number;
  weightTotal?: number;
  header?: string;
  headerValue?: string;
  headerPattern?: string;
  cookie?: string;
  /** The form of the balancer that OpenNJet brings along. */
  headers?: { header: string; headerValue: string }[];
}

/** Certificates by host. */
export interface PostedServers {
  /** Name of a certificate by host; `-1` for none. */
  servers?: Record<string, string>;
  /** PEM of chain and key by name. Secret. */
  certificates?: Record<string, string>;
}

/** What our balancer says of a post; the other one says nothing, and every field is empty. */
export interface PostResult {
  changed?: number;
  removed?: number;
  /** Ids of workers that have not taken it in time. */
  late: number[];
  failures: { key: string; code: string; message: string }[];
}

export interface BackendsApiOptions {
  /** `http://127.0.0.1:18081`, or the name before the path where `socketPath` is given. */
  origin: string;
  /** A unix socket to be used instead of the address of `origin`. */
  socketPath?: string;
  /** Sent as a bearer token; never shown. */
  token?: string;
  /** Milliseconds for an answer; 30,000 without: the balancer waits 5 s each for another writer and for its workers. */
  timeoutMs?: number;
}

const ANSWER_TIME = 30_000;
/** `balancer/configuration/answer.lua`. */
const MOST_BODY = 64 * 1024 * 1024;
const BACKENDS = "/configuration/backends";
const SERVERS = "/configuration/servers";
const GENERAL = "/configuration/general";
const INITIALIZED = "/is-dynamic-lb-initialized";

const FAILURE = object<PostResult["failures"][number]>({ key: text, code: text, message: text });
const RESULT = object<Partial<PostResult>>({
  changed: optional(number),
  removed: optional(number),
  late: optional(list(number)),
  failures: optional(list(FAILURE)),
});
const BACKEND: Reader<Backend> = (value, where) => {
  const { name } = object<{ name: string }>({ name: text })(value, where);
  return { endpoints: [], ...members(value, where), name };
};

export class BackendsApi {
  private readonly transport: Transport;

  constructor({ origin, socketPath, token, timeoutMs = ANSWER_TIME }: BackendsApiOptions) {
    this.transport = new Transport({ origin, socketPath, token, timeoutMs, mostBody: MOST_BODY });
  }

  /** Sets all backends: those that are not named go. Throws RequestRefusedError, with the reason, where one is wrong. */
  post(backends: readonly Backend[]): Promise<PostResult> {
    return this.change({ method: "POST", path: BACKENDS, body: backends });
  }

  /** The backends that are in force. */
  async list(): Promise<Backend[]> {
    return this.read({ method: "GET", path: BACKENDS }, list(BACKEND));
  }

  /** Sets certificates of hosts; hosts that are not named stay. */
  postServers(servers: PostedServers): Promise<PostResult> {
    const secrets = Object.values(servers.certificates ?? {});
    return this.change({ method: "POST", path: SERVERS, body: servers, secrets });
  }

  postGeneral(general: Readonly<Record<string, unknown>>): Promise<PostResult> {
    return this.change({ method: "POST", path: GENERAL, body: general });
  }

  general(): Promise<Record<string, unknown>> {
    return this.read({ method: "GET", path: GENERAL }, members);
  }

  /** Whether backends were posted since the start. */
  async isInitialized(): Promise<boolean> {
    const answer = await this.transport.send({ method: "GET", path: INITIALIZED });
    if (isOk(answer)) return true;
    if (answer.status === 500) return false;
    throw refusal(answer);
  }

  /** Waits for the calls under way, then ends the connections. */
  close(): Promise<void> {
    return this.transport.close();
  }

  private async change(call: Call): Promise<PostResult> {
    const answer = await this.transport.send(call);
    if (!isOk(answer)) throw refusal(answer);
    const empty: PostResult = { late: [], failures: [] };
    return answer.text.trim() === "" ? empty : { ...empty, ...readAnswer(answer, RESULT) };
  }

  private async read<T>(call: Call, reader: Reader<T>): Promise<T> {
    const answer = await this.transport.send(call);
    if (!isOk(answer)) throw refusal(answer);
    return readAnswer(answer, reader);
  }
}

function refusal({ call, status, text: body }: Answer): OpenNjetApiError {
  const Kind =
    status === 404
      ? NotFoundError
      : status >= 500
        ? ServerFailureError
        : status >= 400
          ? RequestRefusedError
          : InvalidAnswerError;
  const { code, message } = stated(body);
  return new Kind(redact(message, call.secrets), failed(call, status, code));
}

/** `{"code", "message"}`, or the body as it is. */
function stated(body: string): { code?: string; message: string } {
  try {
    return object<{ code: string; message: string }>({ code: text, message: text })(JSON.parse(body), "");
  } catch {
    return { message: body };
  }
}
