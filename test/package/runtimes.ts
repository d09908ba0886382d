/** Other runtimes of JavaScript than Node, found or brought into the cache folder, and one program run in each. */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer as createPort } from "node:net";
import { tmpdir } from "node:os";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build, type Plugin } from "vite";

const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
};
/** Nothing may be compiled in a browser page without this. Everything else that a page does not need is forbidden. */
const POLICY = "default-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";

/** The part of a page that posts what goes wrong. */
export const TELLS = `<script>
const tell = (error) => fetch("/result", { method: "POST", body: "error: " + error });
addEventListener("error", ({ message }) => tell(message));
addEventListener("unhandledrejection", ({ reason }) => tell(reason));
</script>`;

/** How a runtime is started, or why it can't be had on this machine. */
export type Found = { binary: string; env?: Record<string, string> } | { skipped: string };

/** Asks a script of this folder. Throws where it fails otherwise than by there being nothing for this machine. */
function ask(script: string, ...args: string[]): Found {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], { encoding: "utf8" });
  if (status === 0) return JSON.parse(stdout);
  if (status === 3) return { skipped: stderr.trim().split("\n").at(-1) ?? "" };
  throw new Error(stderr);
}

export function findRuntime(name: "deno" | "bun" | "workerd"): Found {
  return ask("install-runtime.mjs", name);
}

export function findChromium(): Found {
  return ask("install-chromium.mjs");
}

/** What a program of a command line prints. */
export async function printed(binary: string, args: string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)(binary, args, { cwd, maxBuffer: 1 << 28 });
  return stdout;
}

/** Builds a page for browsers into `folder/site`, as a user of Vite does. `page` is its program. */
export async function bundlePage(folder: string, page: string): Promise<string> {
  writeFileSync(join(folder, "page.js"), page);
  writeFileSync(join(folder, "index.html"), `<!doctype html>${TELLS}<script type="module" src="/page.js"></script>`);
  const outDir = join(folder, "site");
  await build({
    ...{ root: folder, configFile: false, logLevel: "error" },
    build: { outDir, emptyOutDir: true, target: "esnext" },
  });
  return outDir;
}

/** What is deployed beside a worker is imported by its name: core.wasm, and texts. */
const besides: Plugin = {
  name: "besides",
  enforce: "pre",
  resolveId: (id) => (/\.(wasm|txt)$/.test(id) ? { id: `./${basename(id)}`, external: true } : undefined),
};

/** Builds a worker into `folder/worker/worker.js`, by the conditions of worker platforms. `program` is a module with a fetch handler. */
export async function bundleWorker(folder: string, program: string): Promise<string> {
  writeFileSync(join(folder, "worker-source.js"), program);
  const outDir = join(folder, "worker");
  const conditions = ["workerd", "import", "default"];
  await build({
    ...{ root: folder, configFile: false, logLevel: "error", plugins: [besides] },
    ssr: { noExternal: true, target: "webworker", resolve: { conditions } },
    resolve: { conditions },
    build: {
      ...{ ssr: join(folder, "worker-source.js"), outDir, emptyOutDir: true, target: "esnext" },
      rollupOptions: { output: { entryFileNames: "worker.js" } },
    },
  });
  return outDir;
}

async function freePort(): Promise<number> {
  const server = createPort();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function ended(program: ChildProcess): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const exit = new Promise((resolve) => program.once("exit", resolve));
  program.kill("SIGKILL");
  await exit;
}

/** What a worker in `folder` answers. `texts` are files of the folder that it imports as texts. Rejects where it does not start. */
export async function answerOfWorker(binary: string, folder: string, texts: string[] = []): Promise<string> {
  const port = await freePort();
  const modules = [
    '(name = "worker.js", esModule = embed "worker.js")',
    '(name = "core.wasm", wasm = embed "core.wasm")',
    ...texts.map((file) => `(name = "${file}", text = embed "${file}")`),
  ];
  writeFileSync(
    join(folder, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const main :Workerd.Worker = (modules = [${modules.join(", ")}], compatibilityDate = "2026-01-01");
`,
  );
  const program = spawn(binary, ["serve", "config.capnp"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  program.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  try {
    while (program.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
      const text = await answer?.text();
      if (answer?.ok) return text ?? "";
      if (answer) throw new Error(`the worker answered ${answer.status}: ${text} ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`workerd has ended: ${said}`);
  } finally {
    await ended(program);
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return text;
}

/** What the page of a site posts to /result, once, in Chromium. Files of `folder` are served; what is asked for beside them is 404. */
export async function resultOfPage(chromium: { binary: string; env?: object }, folder: string): Promise<string> {
  const profile = mkdtempSync(join(tmpdir(), "njet-kic-chromium-"));
  let program: ChildProcess | undefined;
  const server = createServer();
  try {
    return await new Promise<string>((resolve, reject) => {
      server.on("request", async (request, response) => {
        const path = decodeURIComponent(new URL(request.url ?? "/", "http://a").pathname);
        if (request.method === "POST") resolve(await bodyOf(request));
        try {
          const content = readFileSync(join(folder, path === "/" ? "index.html" : path));
          const type = TYPES[path === "/" ? ".html" : extname(path)] ?? "application/octet-stream";
          response.writeHead(200, { "content-type": type, "content-security-policy": POLICY }).end(content);
        } catch {
          response.writeHead(404).end();
        }
      });
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo;
        const options = ["--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`, "--remote-debugging-port=0"];
        const env = { ...process.env, ...chromium.env };
        program = spawn(chromium.binary, [...options, `http://127.0.0.1:${port}/`], { env, stdio: "ignore" });
        program.once("error", reject);
        program.once("exit", (status) => reject(new Error(`Chromium has ended with ${status}`)));
      });
    });
  } finally {
    program?.removeAllListeners("exit");
    if (program) await ended(program);
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  }
}
