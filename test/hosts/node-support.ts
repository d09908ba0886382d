import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, createServer as createPort } from "node:net";
import { join } from "node:path";
import { bundleOf } from "../../controller/model/bundle.js";
import { ingress, service } from "../cli/objects.js";
import { modelOfYaml } from "../model/model-support.js";
import { codeBlock } from "../package/documents.js";
import { ROOT } from "../package/installed-package.js";
import { sharedCore } from "../support/core.js";

/** The bundle of objects. */
export function bundle(objects: string): Uint8Array {
  return bundleOf(modelOfYaml(objects).snapshot(), sharedCore).bytes;
}

/** An Ingress of app.example.com that leads to peers of loopback on these ports. */
export const app = (...ports: number[]) =>
  `${service("app", "127.0.0.1", ports[0])}${ports
    .slice(1)
    .map(
      (port, i) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: app-${i + 2}, labels: { kubernetes.io/service-name: app } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [127.0.0.1] }]
`,
    )
    .join("")}---\n${ingress("app", "app.example.com", "app")}`;

/** Puts a file in place whole, as `njet-kic compile` does. */
export function replaceFile(path: string, bytes: Uint8Array): void {
  writeFileSync(`${path}.part`, bytes);
  renameSync(`${path}.part`, path);
}

/** A program of the README of core-wasm/hosts/node, by the words behind its code fence. */
export function readmeProgram(name: string): string {
  return codeBlock(readFileSync(join(ROOT, "core-wasm/hosts/node/README.md"), "utf8"), name);
}

export interface Server {
  port: number;
  close(): void;
}

/** A server on a free port of loopback. */
export async function serve(listener: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export async function freePort(): Promise<number> {
  const server = createPort();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Asks over a connection of its own. */
export function ask(port: number, path: string, options: RequestOptions = {}, body?: string | Buffer): Promise<Answer> {
  const headers = { host: "app.example.com", ...(options.headers as Record<string, string>) };
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, agent: false, ...options, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts).toString() }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** A program that says something line by line. */
export class Program {
  readonly process: ChildProcess;
  readonly lines: string[] = [];
  #changed: () => void = () => {};

  constructor(cwd: string, command: string, args: readonly string[]) {
    this.process = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    const told = (text: Buffer) => {
      this.lines.push(...text.toString().split("\n").filter(Boolean));
      this.#changed();
    };
    this.process.stdout?.on("data", told);
    this.process.stderr?.on("data", told);
    this.process.on("exit", () => this.#changed());
  }

  /** Resolves once a line that fits has been said; rejects with all lines where the program ends before. */
  async said(line: RegExp): Promise<string> {
    while (true) {
      const found = this.lines.find((said) => line.test(said));
      if (found !== undefined) return found;
      if (this.process.exitCode !== null) throw new Error(`it has ended: ${this.lines.join("\n")}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }
}
