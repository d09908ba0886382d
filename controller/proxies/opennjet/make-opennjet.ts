import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../../observability/logger.js";
import type { NginxListener } from "../nginx/configured-values.js";
import { ControlClient } from "../nginx/control-client.js";
import { keepCertificate } from "../nginx/default-certificate.js";
import { ListenerPorts } from "../nginx/listener-ports.js";
import { NginxProxy } from "../nginx/nginx-proxy.js";
import { nativeCore, PACKAGE_ROOT } from "../nginx/parts.js";
import type { ImageCompiler } from "../nginx/plan-pieces.js";
import { NginxFolder } from "../nginx/run-folder.js";
import { Supervisor } from "../nginx/supervisor.js";
import { chooseWorkerUser } from "../nginx/worker-user.js";
import { usableCores } from "../usable-cores.js";
import { OpenNjetApi } from "./api/index.js";
import { ApiSocket } from "./api-socket.js";
import { CertificateFiles } from "./certificate-files.js";
import { CertificateMaps } from "./certificate-maps.js";
import { systemClock } from "./clock.js";
import { controlFile, type OpenNjetConfigurationOptions, openNjetConfiguration } from "./configuration.js";
import { questionFolder } from "./locations/questions.js";
import { locationsCarrier } from "./make-locations.js";
import { mapSwitch } from "./map-switch.js";
import { OpenNjetProxy } from "./opennjet-proxy.js";
import { type BalancerName, type Carrier, findOpenNjet } from "./parts.js";
import { PlaneFolder } from "./plane-folder.js";

/** Connections of each worker, as many as the embedded proxy takes. */
const CONNECTIONS = 16_384;
/** OpenNJet takes no more. */
const MOST_WORKERS = 512;
const API_SOCKET = "api.sock";

export interface OpenNjetOptions {
  /** How routes get there. */
  carrier: Carrier;
  /** Who balances with the carrier locations. */
  balancer: BalancerName;
  /** With the carrier locations: how many there may be. */
  maxLocations: number;
  /** Folder of the installation; undefined: none is named. */
  prefix: string | undefined;
  http: NginxListener;
  https: NginxListener;
  /** Undefined: one for each core that we may use, see usableCores. */
  workers: number | undefined;
  /** `USER` or `USER:GROUP` of the workers, where we are root; undefined: one without rights. */
  user: string | undefined;
  /** MiB of memory for the state, which workers share. */
  stateSize: number;
  trustedProxies: readonly string[];
  proxyProtocol: boolean;
  accessLog: boolean;
  defaultCertificate: { chain: string; key: string } | undefined;
  /** Port of OpenNJet's own `/stats`; undefined: none. */
  stats: NginxListener | undefined;
  /** Folder that stays over a restart; undefined: a temporary one. */
  runDir: string | undefined;
  /** Milliseconds that requests under way have after a stop. */
  drainTime: number;
  version: string;
}

export interface OpenNjetContext {
  compiler: ImageCompiler;
  logger: Logger;
}

/** An OpenNJet of our own, not started yet. Rejects with PartUnavailable where something is missing. */
export async function ownOpenNjet(
  { compiler, logger }: OpenNjetContext,
  options: OpenNjetOptions,
): Promise<OpenNjetProxy> {
  const installation = await findOpenNjet(options.prefix, options.carrier, options.balancer);
  // The bundled balancer knows nothing of the core.
  const library =
    options.balancer === "bundled"
      ? ""
      : await nativeCore({ say: (text) => logger.info("preparing opennjet", { text }) });
  // `auto` counts the cores of the machine, also those that this process may not use; and who asks all workers has to know how many there are.
  const workers = options.workers ?? Math.min(usableCores(), MOST_WORKERS);
  const ports = await ListenerPorts.choose(options.http, options.https);
  const { runDir } = options;
  const folder = runDir === undefined ? NginxFolder.temporary("opennjet") : NginxFolder.stable(runDir, "opennjet");
  try {
    const certificate = keepCertificate(folder, options.defaultCertificate);
    const { temp } = folder;
    const user = await chooseWorkerUser({ server: "opennjet", folder: temp, asked: options.user, logger });
    const plane = new PlaneFolder(folder, options.carrier, user?.uid === 0 ? undefined : user);
    plane.writeDefault(certificate);
    const apiSocket = join(folder.path, API_SOCKET);
    const files = { chain: plane.defaultPair, key: plane.defaultPair };
    const questions = questionFolder(folder.token);
    const settings: Omit<OpenNjetConfigurationOptions, "http" | "https"> = {
      carrier: options.carrier,
      balancer: options.balancer,
      modulesFolder: installation.modules,
      luaPath: installation.luaPath,
      luaCPath: installation.luaCPath,
      packageRoot: PACKAGE_ROOT ?? "",
      library,
      runDirectory: folder.path,
      tempDirectory: folder.tempOf(user?.name),
      controlSocket: folder.socket,
      tokenFile: folder.tokenFile,
      journalFile: folder.journal,
      defaultCertificate: files,
      workers,
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
      api: { socket: apiSocket },
      stats: options.stats,
      questions,
    };
    const configuration = () => openNjetConfiguration({ ...settings, http: ports.http, https: ports.https });
    folder.write(controlFile(folder.path), configuration().control);
    const client = new ControlClient(folder.socket, folder.token);
    const api = new OpenNjetApi({ origin: "http://opennjet", socketPath: apiSocket });
    const beside = new ControlClient(folder.socket, folder.token);
    const certificates = new CertificateMaps({
      maps: api.maps,
      files: new CertificateFiles(plane.certificates, plane.user),
      workers: options.carrier === "locations" ? undefined : mapSwitch(beside, logger),
      others: files,
      logger,
      clock: systemClock,
    });
    const socket = new ApiSocket(apiSocket, logger);
    let proxy: OpenNjetProxy | undefined;
    const makeRunner = (onRestart: () => void) =>
      new Supervisor({
        name: "opennjet",
        installation,
        folder,
        // A newer program brings newer Lua code: an OpenNJet that is taken over has to read it.
        configuration: () => `# njet-kic ${options.version}\n${configuration().data}`,
        ports,
        client,
        logger,
        // OpenNJet writes temporary files below the folder above that of its first log.
        errorLog: plane.errorLog,
        args: ["-d", plane.path],
        // An OpenNJet that starts begins with nothing: an older state that is replayed late would undo what it is told meanwhile.
        prepare() {
          rmSync(apiSocket, { force: true });
          plane.makeFresh();
        },
        prepareReload() {
          // Its new control server would find the socket of the old one in its way.
          rmSync(apiSocket, { force: true });
          plane.makeFiles();
        },
        onRestart() {
          onRestart();
          proxy?.restarted();
        },
      });
    const { accessLog, proxyProtocol, maxLocations, balancer } = options;
    const shared = { folder, logger, makeRunner, ports, accessLog, questions };
    const carrier =
      options.carrier === "locations"
        ? locationsCarrier({ ...shared, api, workers, proxyProtocol, maxLocations, balancer })
        : new NginxProxy({ ...shared, compiler, client, defaultCertificate: certificate });
    proxy = new OpenNjetProxy({
      carrier,
      api,
      certificates,
      workers: options.workers,
      logger,
      release() {
        socket.stop();
        return beside.close();
      },
    });
    socket.start();
    return proxy;
  } catch (error) {
    folder.remove();
    throw error;
  }
}
