// Connects to Kubernetes and to a control plane. Give each controller its own connections, so that a slow or overloaded
// one does not delay the others (K6).
import { regionKey } from "../config/build.ts";
import { Secret } from "../config/secret.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { type ControlPlane, createControlPlane } from "../control-plane/connection.ts";
import type { KubeApi } from "../kube/api.ts";
import { createKubeApi } from "../kube/client.ts";
import { loadKubeEndpoint } from "../kube/endpoint.ts";
import { createHttpTransport } from "../kube/http-transport.ts";
import { defaultWorkers } from "./controllers.ts";
import { build, completeAccess, completeHostDeps, type HostDeps } from "./host-deps.ts";

export interface KubernetesOptions {
  /** The path of a kubeconfig. Without it, `env` decides: the pod's service account, or KUBECONFIG. */
  readonly kubeconfig?: string;
  /** Default: the kubeconfig's current context. */
  readonly context?: string;
  /** For example process.env. Default: empty. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Maximum number of requests in flight. Default: as many as a controller has workers. */
  readonly connections?: number;
}

export interface KubernetesConnection {
  readonly api: KubeApi;
  readonly server: string;
  /** Aborts all requests. */
  close(): Promise<void>;
}

/** Reads the credentials. Connects on the first request. */
export async function connectKubernetes(
  options: KubernetesOptions,
  hostDeps: HostDeps,
  signal: AbortSignal,
): Promise<KubernetesConnection> {
  const { env = {}, connections = defaultWorkers, ...place } = options;
  const deps = { ...completeHostDeps(hostDeps), ...completeAccess(env) };
  const endpoint = await loadKubeEndpoint({ ...place, env }, deps, signal);
  const transport = createHttpTransport({ endpoint, connections, userAgent: `krane/${build.version}` }, deps);
  return { api: createKubeApi(transport), server: endpoint.server, close: () => transport.close() };
}

export interface ControlPlaneConnectionOptions {
  /** The name of the controller that uses the connection. */
  readonly controller: string;
  /** http:// or https://. */
  readonly url: string;
  /** For example "us-east-1.aws". */
  readonly region: string;
  /** A source is read before every call, so that the token may rotate. */
  readonly token: string | SecretSource;
  /** PEM certificates to trust instead of the system's. */
  readonly ca?: string;
}

/** Connects on the first call. */
export function connectControlPlane(
  { url, region, token, ...options }: ControlPlaneConnectionOptions,
  hostDeps: HostDeps = {},
): ControlPlane {
  const connection = {
    ...options,
    baseUrl: url.replace(/\/+$/, ""),
    region: regionKey(region, undefined),
    token: typeof token === "string" ? fixedSecret(token) : token,
  };
  return createControlPlane(connection, completeHostDeps(hostDeps));
}

export function fixedSecret(value: string): SecretSource {
  const secret = new Secret(value);
  return { current: async () => secret, refresh: () => undefined };
}
