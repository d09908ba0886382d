import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { dirname, join, resolve } from "node:path";

/** How the API server is reached, and as whom. */
export interface ClusterAccess {
  /** Base URL, without a slash at its end. */
  server: string;
  /** PEM; the certificates of the system if absent. */
  ca?: string | Buffer;
  /** PEM of a client certificate and its key. Secret. */
  cert?: string | Buffer;
  key?: string | Buffer;
  /** Name that the server's certificate must have, if not that of the URL. */
  servername?: string;
  verify: boolean;
  /** Value of the Authorization header. Secret. */
  authorization?: string;
  /** Namespace that this identity belongs to. */
  namespace?: string;
}

/** Where access comes from. `load` reads files and runs helpers anew each time: tokens and certificates are renewed. */
export interface Credentials {
  load(): Promise<ClusterAccess>;
}

export const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * The service account of the pod (Kubernetes, "Accessing the API from within a Pod"): the server from
 * KUBERNETES_SERVICE_HOST and _PORT in `env`; `token`, `ca.crt` and `namespace` from `folder`.
 */
export function serviceAccount(env: NodeJS.ProcessEnv, folder = SERVICE_ACCOUNT_FOLDER): Credentials {
  return {
    async load() {
      const host = env.KUBERNETES_SERVICE_HOST;
      const port = env.KUBERNETES_SERVICE_PORT;
      if (!host || !port) throw new Error("no cluster: this is no pod; --kubeconfig or --config-dir is needed");
      const [token, ca] = await Promise.all([
        readFile(join(folder, "token"), "utf8"),
        readFile(join(folder, "ca.crt")),
      ]);
      const namespace = await readFile(join(folder, "namespace"), "utf8").catch(() => "");
      return {
        server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
        ca,
        verify: true,
        authorization: `Bearer ${token.trim()}`,
        ...(namespace.trim() === "" ? {} : { namespace: namespace.trim() }),
      };
    },
  };
}

/**
 * The current context of a kubeconfig file: certificates, tokens, basic authentication, exec plugins and OIDC, as
 * @kubernetes/client-node understands them, and `tokenFile`, which it does not. The library is loaded only here: it costs
 * 80 MB of memory. Rejects with an Error that names the option and never says what a token file holds.
 */
export function kubeconfig(file: string): Credentials {
  return {
    async load() {
      const { KubeConfig } = await import("@kubernetes/client-node");
      const config = new KubeConfig();
      const text = await readFile(file, "utf8");
      config.loadFromString(text);
      config.makePathsAbsolute(dirname(file));
      const cluster = config.getCurrentCluster();
      if (cluster === null) throw new Error(`--kubeconfig: the current context of ${file} names no cluster`);
      const options: Parameters<typeof config.applyToHTTPSOptions>[0] = { headers: {} };
      await config.applyToHTTPSOptions(options);
      const headers = options.headers as Record<string, string>;
      const basic = options.auth ? `Basic ${Buffer.from(options.auth).toString("base64")}` : undefined;
      const token = await tokenFromFile(file, text, config.getCurrentUser()?.name);
      const authorization = token ?? headers.Authorization ?? basic;
      const namespace = config.getContextObject(config.getCurrentContext())?.namespace;
      return {
        server: cluster.server.replace(/\/+$/, ""),
        verify: !cluster.skipTLSVerify,
        ...(options.ca ? { ca: options.ca as Buffer } : {}),
        ...(options.cert ? { cert: options.cert as Buffer } : {}),
        ...(options.key ? { key: options.key as Buffer } : {}),
        ...(cluster.tlsServerName ? { servername: cluster.tlsServerName } : {}),
        ...(authorization ? { authorization } : {}),
        ...(namespace ? { namespace } : {}),
      };
    },
  };
}

/**
 * Authorization by the `tokenFile` of a user, if it has one; as in client-go, it counts before `token`, and a relative path
 * starts at the folder of the kubeconfig.
 */
async function tokenFromFile(file: string, text: string, user: string | undefined): Promise<string | undefined> {
  if (user === undefined || !text.includes("tokenFile")) return undefined;
  const { parse } = await import("yaml");
  const { users } = parse(text) as { users?: { name?: unknown; user?: { tokenFile?: unknown } }[] };
  const path = users?.find(({ name }) => name === user)?.user?.tokenFile;
  if (typeof path !== "string" || path === "") return undefined;
  const token = await readFile(resolve(dirname(file), path), "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new Error(`--kubeconfig: the tokenFile ${path} of ${file} cannot be read (${error.code})`);
  });
  if (token.trim() === "") throw new Error(`--kubeconfig: the tokenFile ${path} of ${file} is empty`);
  return `Bearer ${token.trim()}`;
}
