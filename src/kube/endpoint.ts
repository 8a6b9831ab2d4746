// Finds the API server and the credentials for it: from the configured kubeconfig, else from the pod's service account,
// else from the files in KUBECONFIG.
import { delimiter } from "node:path";
import {
  type Credential,
  type CredentialDeps,
  type CredentialSource,
  cachedCredential,
  credentialError,
  fixedCredential,
  type KubeEndpoint,
} from "./credentials.ts";
import { execCredential } from "./exec-plugin.ts";
import {
  credentialFileMaxAgeMs,
  loadInClusterEndpoint,
  openCredentialCa,
  readBearerToken,
  readCredentialFile,
} from "./in-cluster.ts";
import { type Kubeconfig, mergeKubeconfigs, parseKubeconfig, type Settings } from "./kubeconfig.ts";

export interface EndpointOptions {
  /** The path of a kubeconfig; overrides the environment. */
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export async function loadKubeEndpoint(
  options: EndpointOptions,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<KubeEndpoint> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port, KUBECONFIG: files } = options.env;
  if (options.kubeconfig !== undefined) {
    const text = await readCredentialFile(options.kubeconfig, deps, signal);
    return endpointOf(await parseKubeconfig(text, options.kubeconfig), options.context, deps, signal);
  }
  if (host && port) return loadInClusterEndpoint({ host, port }, deps, signal);
  if (!files) {
    throw credentialError(
      "no kubeconfig is configured, KUBECONFIG is not set, and this process does not run in a pod",
    );
  }
  return endpointOf(await loadMerged(files, deps, signal), options.context, deps, signal);
}

/** Like kubectl, skips files of the list that do not exist, unless none does. */
async function loadMerged(files: string, deps: CredentialDeps, signal: AbortSignal): Promise<Kubeconfig> {
  const paths = files.split(delimiter).filter((path) => path !== "");
  const configs: Kubeconfig[] = [];
  for (const path of paths) {
    const text = await readCredentialFile(path, deps, signal).catch((error: unknown) => {
      if (isMissingFile(error)) return undefined;
      throw error;
    });
    if (text !== undefined) configs.push(await parseKubeconfig(text, path));
  }
  if (configs.length === 0) throw credentialError(`no kubeconfig found at ${paths.join(", ")}`);
  return mergeKubeconfigs(configs);
}

/** The system error may be wrapped by the code that reads the file. */
function isMissingFile(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("code" in error && error.code === "ENOENT") || isMissingFile(error.cause);
}

async function endpointOf(
  config: Kubeconfig,
  contextName: string | undefined,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<KubeEndpoint> {
  const context = named("context", contextName ?? config.currentContext, config.contexts);
  const cluster = named("cluster", context.text("cluster"), config.clusters);
  const userName = context.text("user");
  const user = userName === undefined ? undefined : named("user", userName, config.users);
  cluster.refuse("proxy-url");
  const server = cluster.text("server");
  if (server === undefined) throw credentialError("the kubeconfig's cluster has no server");
  const serverName = cluster.text("tls-server-name");
  const caFile = cluster.path("certificate-authority");
  const ca =
    cluster.data("certificate-authority-data") ??
    (caFile === undefined ? undefined : await openCredentialCa(caFile, deps, signal));
  return {
    server,
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { serverName }),
    ...(cluster.flag("insecure-skip-tls-verify") ? { insecureSkipTlsVerify: true } : {}),
    credentials: credentialsOf(user, cluster, deps),
  };
}

function named(what: string, name: string | undefined, among: ReadonlyMap<string, Settings>): Settings {
  if (name === undefined) throw credentialError(`the kubeconfig names no ${what}`);
  const found = among.get(name);
  if (found === undefined) throw credentialError(`the kubeconfig has no ${what} "${name}"`);
  return found;
}

function credentialsOf(
  user: Settings | undefined,
  cluster: Settings,
  deps: CredentialDeps,
): CredentialSource {
  if (user === undefined) return fixedCredential({});
  user.refuse("as", "as-uid", "as-groups", "as-user-extra", "auth-provider", "username", "password");
  const exec = user.child("exec");
  if (exec !== undefined) return execOf(exec, cluster, deps);
  return cachedCredential(deps.clock, async (signal) => ({
    credential: await userCredential(user, deps, signal),
    staleAtMs: deps.clock.nowMs() + credentialFileMaxAgeMs,
  }));
}

async function userCredential(
  user: Settings,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<Credential> {
  const tokenFile = user.path("tokenFile");
  const token = user.text("token");
  const authorization =
    tokenFile === undefined ? token && `Bearer ${token}` : await readBearerToken(tokenFile, deps, signal);
  const pem = async (name: string) => {
    const path = user.path(name);
    return user.data(`${name}-data`) ?? (path && (await readCredentialFile(path, deps, signal)));
  };
  const cert = await pem("client-certificate");
  const key = await pem("client-key");
  if ((cert === undefined) !== (key === undefined)) {
    throw credentialError("the kubeconfig's user has a client certificate or a client key, but not both");
  }
  return {
    ...(authorization === undefined ? {} : { authorization }),
    ...(cert && key ? { certificate: { cert, key } } : {}),
  };
}

function execOf(exec: Settings, cluster: Settings, deps: CredentialDeps): CredentialSource {
  const command = exec.text("command");
  if (command === undefined) throw credentialError("the kubeconfig's exec plugin has no command");
  if (exec.text("interactiveMode") === "Always") {
    throw credentialError(`exec plugin ${command} is always interactive, which krane does not support`);
  }
  const env = exec.children("env").map((one) => [one.text("name") ?? "", one.text("value") ?? ""]);
  return execCredential(
    {
      apiVersion: exec.text("apiVersion") ?? "",
      // A bare name is looked up on the PATH; only a path is relative to the file.
      command: command.includes("/") ? (exec.path("command") ?? command) : command,
      args: exec.texts("args"),
      env: Object.fromEntries(env),
      ...(exec.flag("provideClusterInfo") ? { cluster: clusterInfo(cluster) } : {}),
    },
    deps,
  );
}

function clusterInfo(cluster: Settings): Record<string, unknown> {
  const names = ["server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data"];
  return Object.fromEntries(
    names.map((name) => [name, cluster.raw(name)]).filter(([, value]) => value !== undefined),
  );
}
