/** Replays the transcript on something that should answer alike. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { connect } from "node:tls";
import { makeCertificate } from "../support/certificates.js";
import { normalised, type OtherStep, type RequestStep, type Step } from "./transcript.js";

/** What the transcript is replayed on: it has the static configuration of `replayed-configuration.ts`. */
export interface ReplayTarget {
  /** The real port for one of the transcript. */
  port(port: number): number;
  /** The port that stands in requests and answers for one of the transcript. */
  address(port: number): number;
  /** What stands for PREFIX. */
  prefix: string;
  /** Folder of `c1.pem` and `k1.pem`. */
  certificates: string;
  /** Path of the page of metrics on the control server. */
  metrics: string;
}

const CONTROL_PORT = 18081;
const DATA_PORT = 18080;
const TLS_PORT = 18443;
const TLS_NAME = "tls.example.com";
const DYNAMIC_TLS_NAME = "dynamic-tls.example.com";
/** Workers apply what the agent has taken some milliseconds later; probes take longer. */
const PATIENCE = 15_000;

export class Replay {
  readonly certificates = new Map<string, { chain: string; key: string }>();
  private readonly serials = new Map<string, string>();
  private readonly told = new Map<string, string>();
  private metrics?: string;
  private picked: string[] = [];
  /** Names of servers whose certificates are asked for next. */
  private tlsNames: string[] = [];
  private pending: string[] = [];

  constructor(private readonly target: ReplayTarget) {
    for (const number of ["1", "2", "3"]) {
      const pair =
        number === "1"
          ? { chain: this.file("c1.pem"), key: this.file("k1.pem") }
          : makeCertificate(`cert${number}.example.com`, TLS_NAME, DYNAMIC_TLS_NAME);
      this.certificates.set(`c${number}`, pair);
    }
  }

  /** Replays a step; what was wanted, and what came. */
  async step(step: Step): Promise<{ wanted: string; came: string }> {
    return step.kind === "request" ? this.request(step) : this.other(step);
  }

  /** A request: reads until it is as wanted, or until it is clear that it won't be. */
  private async request(step: RequestStep): Promise<{ wanted: string; came: string }> {
    const wanted = `${step.status} ${normalised(orderedHead(step), "PREFIX")}`;
    const deadline = performance.now() + PATIENCE;
    for (;;) {
      const came = normalised(await this.ask(step), this.target.prefix);
      if (came === wanted || step.method !== "GET" || performance.now() > deadline) return { wanted, came };
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  private async ask(step: RequestStep): Promise<string> {
    const { method, url, headers, body, withHead } = step;
    const port = this.target.port(Number(url.port));
    const response = await send(
      port,
      method,
      url.pathname + url.search,
      { Host: url.hostname, ...headers },
      this.withPorts(body),
    );
    const text = this.withoutPorts(response.body);
    return `${response.status} ${withHead ? orderedText(response.head, text) : text}`;
  }

  /** Lines that are no request of curl. */
  private async other({ text }: OtherStep): Promise<{ wanted: string; came: string }> {
    if (text.startsWith("#")) {
      if (text.startsWith("# dynamic ssl VS")) await this.addTlsServer();
      return { wanted: text, came: text };
    }
    if (text.startsWith("backend-")) return this.pick(text);
    if (text.startsWith("njet_vts_")) return this.metric(text);
    if (text.startsWith("subject=")) return { wanted: text.trim(), came: await this.tlsSubject() };
    if (text.startsWith("serial=")) return this.serial(text);
    if (text.startsWith("$ PUT /v1/ssl ")) {
      for (const operation of text.slice("$ PUT /v1/ssl ".length).split(", ")) await this.putCertificate(operation);
      return { wanted: text, came: text };
    }
    if (text === "$ mismatched key") {
      const [{ chain }, { key }] = [this.certificates.get("c3")!, this.certificates.get("c2")!];
      await this.putPair("add", chain, key);
      return { wanted: text, came: text };
    }
    // The answer of what stands above.
    const came = this.pending.shift() ?? "nothing was asked";
    return { wanted: normalised(text, "PREFIX"), came: normalised(came, this.target.prefix) };
  }

  /** Which of the members answers is not said by anything: as many lines must be of the same members. */
  private async pick(text: string): Promise<{ wanted: string; came: string }> {
    const { body } = await send(this.target.port(DATA_PORT), "GET", "/be", { Host: "127.0.0.1" });
    this.picked.push(this.withoutPorts(body).trim());
    return {
      wanted: text.replace(/backend-1900[12]/, "backend"),
      came: this.picked.at(-1)!.replace(/backend-1900[12]/, "backend"),
    };
  }

  /** Names and labels of metrics; their values are others. */
  private async metric(text: string): Promise<{ wanted: string; came: string }> {
    this.metrics ??= (
      await send(this.target.port(CONTROL_PORT), "GET", this.target.metrics, { Host: "127.0.0.1" })
    ).body;
    const name = (line: string) => line.replace(/ [\d.]+$/, "").replace(/hostname="[^"]*"/, 'hostname="HOST"');
    const wanted = name(text);
    return {
      wanted,
      came:
        this.metrics
          .split("\n")
          .map(name)
          .find((line) => line === wanted) ?? "not there",
    };
  }

  private async putCertificate(operation: string): Promise<void> {
    const [, action, name] = /^(add|del) (c\d)/.exec(operation) ?? [];
    const { chain, key } = this.certificates.get(name)!;
    await this.putPair(action, chain, key);
  }

  private async putPair(action: string, chain: string, key: string): Promise<void> {
    const body = JSON.stringify({
      listens: [`127.0.0.1:${TLS_PORT}`],
      serverNames: [TLS_NAME],
      type: action,
      cert_info: { cert_type: "ecc", certificate: `data:${chain}`, certificateKey: `data:${key}` },
    });
    const answer = await send(
      this.target.port(CONTROL_PORT),
      "PUT",
      "/api/v1/ssl",
      { Host: "127.0.0.1" },
      this.withPorts(body),
    );
    this.pending.push(`${this.withoutPorts(answer.body)} -> HTTP ${answer.status}`);
    this.tlsNames = [TLS_NAME];
  }

  private async addTlsServer(): Promise<void> {
    const { chain, key } = this.certificates.get("c2")!;
    const body = JSON.stringify({
      type: "add",
      addr_port: `127.0.0.1:${TLS_PORT}`,
      server_name: DYNAMIC_TLS_NAME,
      server_body: `ssl_certificate "data:${chain}"; ssl_certificate_key "data:${key}"; return 200 tls;`,
    });
    const answer = await send(
      this.target.port(CONTROL_PORT),
      "POST",
      "/api/v1/dyn_srv",
      { Host: "127.0.0.1" },
      this.withPorts(body),
    );
    this.pending.push(`${this.withoutPorts(answer.body)} -> HTTP ${answer.status}`);
    this.tlsNames = [DYNAMIC_TLS_NAME, TLS_NAME];
  }

  private async tlsSubject(): Promise<string> {
    const name = this.tlsNames.shift() ?? TLS_NAME;
    const { commonName, serial } = await peerCertificate(this.target.port(TLS_PORT), name);
    this.told.set("serial", serial);
    return `subject=CN = ${commonName}`;
  }

  /** The same serial number wherever the transcript has the same. */
  private serial(text: string): { wanted: string; came: string } {
    const came = this.told.get("serial") ?? "";
    if (!this.serials.has(text)) this.serials.set(text, came);
    return { wanted: this.serials.get(text) ?? "", came };
  }

  private withPorts(body: string | undefined): string | undefined {
    return body?.replaceAll(
      /127\.0\.0\.1:(1(?:8|9)\d{3})/g,
      (_, port: string) => `127.0.0.1:${this.target.address(Number(port))}`,
    );
  }

  private withoutPorts(text: string): string {
    let read = text;
    for (const port of [18080, 18081, 18090, 18443, 19001, 19002, 19009]) {
      read = read.replaceAll(
        new RegExp(`(127\\.0\\.0\\.1:|backend-)${this.target.address(port)}\\b`, "g"),
        `$1${port}`,
      );
    }
    return read;
  }

  private file(name: string): string {
    return readFileSync(join(this.target.certificates, name), "utf8");
  }
}

/** Writes `conf/c1.pem` and `conf/k1.pem`, which the server for TLS begins with. */
export function writeFirstCertificate(folder: string): void {
  const { chain, key } = makeCertificate("cert1.example.com", TLS_NAME);
  mkdirSync(join(folder, "conf"), { recursive: true });
  writeFileSync(join(folder, "conf", "c1.pem"), chain);
  writeFileSync(join(folder, "conf", "k1.pem"), key, { mode: 0o600 });
}

interface Sent {
  status: number;
  head: string;
  body: string;
}

function send(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const length: Record<string, string> =
      body === undefined ? {} : { "Content-Length": String(Buffer.byteLength(body)) };
    const options = {
      host: "127.0.0.1",
      port,
      method,
      path,
      headers: { ...headers, ...length },
      agent: false as const,
    };
    const sent = request(options, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, head: headOf(response), body: Buffer.concat(parts).toString() });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function headOf({ httpVersion, statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/${httpVersion} ${statusCode} ${statusMessage}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return lines.join("\n");
}

/** The order of headers is the server's affair. A connection of its own is asked for each request here. */
function orderedText(head: string, body: string): string {
  const [first, ...headers] = head.split("\n");
  const kept = headers.filter((line) => !/^(connection|keep-alive):/i.test(line)).sort();
  return [first, ...kept, "", body].join("\n");
}

function orderedHead({ withHead, answer }: RequestStep): string {
  if (!withHead) return answer;
  const [head, body] = answer.replaceAll("\r", "").split("\n\n");
  return orderedText(head, body);
}

function peerCertificate(port: number, servername: string): Promise<{ commonName: string; serial: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, servername, rejectUnauthorized: false }, () => {
      const {
        subject: { CN },
        serialNumber,
      } = socket.getPeerCertificate();
      socket.destroy();
      resolve({ commonName: String(CN), serial: serialNumber });
    });
    socket.on("error", reject);
  });
}
