import type { Logger } from "../../observability/logger.js";
import { usableCores } from "../usable-cores.js";
import { AttachedNginx } from "./attached.js";
import { nginxConfiguration } from "./configuration.js";
import type { NginxConfigurationOptions } from "./configuration-options.js";
import type { NginxListener } from "./configured-values.js";
import { ControlClient } from "./control-client.js";
import { keepCertificate } from "./default-certificate.js";
import { ListenerPorts } from "./listener-ports.js";
import { NginxProxy } from "./nginx-proxy.js";
import { findNginx, nativeCore, PACKAGE_ROOT } from "./parts.js";
import type { ImageCompiler } from "./plan-pieces.js";
import { NginxFolder } from "./run-folder.js";
import { Supervisor } from "./supervisor.js";
import { chooseWorkerUser } from "./worker-user.js";

/** Connections of each worker, as many as the embedded proxy takes. */
const CONNECTIONS = 16_384;

export interface NginxOptions {
  /** Path of the program; undefined: the one that is found. */
  binary: string | undefined;
  http: NginxListener;
  https: NginxListener;
  /** 0: one for each core that we may use, see usableCores. */
  workers: number;
  /** `USER` or `USER:GROUP` of the workers; undefined: a customary one, where the controller is root. */
  user?: string;
  /** MiB of memory for the state, which workers share. */
  stateSize: number;
  trustedProxies: readonly string[];
  /** Clients are named by the PROXY protocol. */
  proxyProtocol: boolean;
  accessLog: boolean;
  defaultCertificate: { chain: string; key: string } | undefined;
  /** Folder that stays over a restart; undefined: a temporary one. */
  runDir: string | undefined;
  /** Milliseconds that requests under way have after a stop. */
  drainTime: number;
  version: string;
}

interface Parts {
  compiler: ImageCompiler;
  logger: Logger;
}

/** An NGINX of our own, not started yet. Rejects with PartUnavailable where something is missing. */
export async function ownNginx({ compiler, logger }: Parts, options: NginxOptions): Promise<NginxProxy> {
  const say = (text: string) => logger.info("preparing nginx", { text });
  const installation = await findNginx({ binary: options.binary, say });
  const library = await nativeCore({ say });
  const ports = await ListenerPorts.choose(options.http, options.https);
  const folder = options.runDir === undefined ? NginxFolder.temporary() : NginxFolder.stable(options.runDir);
  if (folder.foreign.length > 0) logger.warn("taken out of the run folder: it was not ours", { paths: folder.foreign });
  if (folder.stays && folder.isReplaceable) {
    logger.warn("others can write where the run folder is: they could put another one in its place", {
      path: folder.path,
    });
  }
  try {
    const certificate = keepCertificate(folder, options.defaultCertificate);
    const user = await chooseWorkerUser({ server: "nginx", folder: folder.temp, asked: options.user, logger });
    const settings: Omit<NginxConfigurationOptions, "http" | "https"> = {
      modules: installation.modules,
      luaPath: installation.luaPath,
      luaCPath: installation.luaCPath,
      packageRoot: PACKAGE_ROOT ?? "",
      library,
      runDirectory: folder.path,
      tempDirectory: folder.tempOf(user?.name),
      controlSocket: folder.socket,
      tokenFile: folder.tokenFile,
      journalFile: folder.journal,
      defaultCertificate: { chain: folder.certificateFile, key: folder.certificateKeyFile },
      // NGINX's `auto` counts the cores of the machine, also those that a container may not use: each worker holds the whole state.
      workers: options.workers || usableCores(),
      connections: CONNECTIONS,
      ...(user && { user }),
      trustedProxies: options.trustedProxies,
      proxyProtocol: options.proxyProtocol,
      allowUnderscoreHeaders: false,
      ...(options.accessLog && { accessLog: folder.accessLog }),
      errorLog: "stderr",
      errorLevel: "warn",
      bodyLimit: 0,
      stateSize: options.stateSize,
      shutdownTimeout: options.drainTime,
    };
    const client = new ControlClient(folder.socket, folder.token);
    // A newer program brings newer Lua code: an NGINX that is taken over has to read it.
    const configuration = () => {
      const text = nginxConfiguration({ ...settings, http: ports.http, https: ports.https });
      return `# njet-kic ${options.version}\n${text}`;
    };
    return new NginxProxy({
      compiler,
      folder,
      client,
      logger,
      makeRunner: (onRestart) => {
        return new Supervisor({ installation, folder, configuration, ports, client, logger, onRestart });
      },
      defaultCertificate: certificate,
      ports,
      accessLog: options.accessLog,
    });
  } catch (error) {
    folder.remove();
    throw error;
  }
}

/** The NGINX that answers on a control socket, and that somebody else runs. Throws an Error where its token can't be read. */
export function attachedNginx(
  { compiler, logger }: Parts,
  socket: string,
  defaultCertificate: NginxOptions["defaultCertificate"],
): NginxProxy {
  const folder = NginxFolder.of(socket);
  const client = new ControlClient(folder.socket, folder.token);
  return new NginxProxy({
    compiler,
    folder,
    client,
    logger,
    makeRunner: () => new AttachedNginx(client, socket),
    defaultCertificate,
    ports: undefined,
    accessLog: false,
  });
}
