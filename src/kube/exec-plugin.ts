// Credentials from an exec plugin (client.authentication.k8s.io), as cloud providers use them. A credential is cached
// until it expires or the server rejects it. The plugin's output is secret, so none of it goes into an error (K7).
import {
  type Credential,
  type CredentialDeps,
  type CredentialSource,
  cachedCredential,
  credentialError,
  type LoadedCredential,
} from "./credentials.ts";

export interface ExecPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Passed to the plugin if the kubeconfig asks for it. */
  readonly cluster?: Readonly<Record<string, unknown>>;
}

const apiVersions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

// Renewed a little early, so that no request is in flight when the token expires.
const expiryLeewayMs = 10_000;

export function execCredential(plugin: ExecPlugin, deps: CredentialDeps): CredentialSource {
  if (!apiVersions.includes(plugin.apiVersion)) {
    throw credentialError(`exec plugin ${plugin.command}: apiVersion ${plugin.apiVersion} is not supported`);
  }
  return cachedCredential(deps.clock, (signal) => runPlugin(plugin, deps, signal));
}

async function runPlugin(
  plugin: ExecPlugin,
  deps: CredentialDeps,
  signal: AbortSignal,
): Promise<LoadedCredential> {
  const info = {
    apiVersion: plugin.apiVersion,
    kind: "ExecCredential",
    spec: { interactive: false, ...(plugin.cluster === undefined ? {} : { cluster: plugin.cluster }) },
  };
  const env = { ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  const result = await deps
    .runCommand({ command: plugin.command, args: plugin.args, env }, signal)
    .catch((error: unknown) => {
      signal.throwIfAborted();
      throw credentialError(`cannot run exec plugin ${plugin.command}`, error);
    });
  if (result.exitCode !== 0) {
    throw credentialError(`exec plugin ${plugin.command} exited with code ${result.exitCode}`);
  }
  return parseExecCredential(plugin, result.stdout, deps);
}

interface ExecStatus {
  readonly token?: string;
  readonly clientCertificateData?: string;
  readonly clientKeyData?: string;
  readonly expirationTimestamp?: string;
}

function parseExecCredential(plugin: ExecPlugin, stdout: string, deps: CredentialDeps): LoadedCredential {
  const answer = parseQuietly(stdout);
  const {
    token,
    clientCertificateData: cert,
    clientKeyData: key,
    expirationTimestamp,
  } = answer?.status ?? {};
  if (answer?.apiVersion !== plugin.apiVersion || (!token && !(cert && key))) {
    throw credentialError(`exec plugin ${plugin.command} did not print a ${plugin.apiVersion} credential`);
  }
  const credential: Credential = {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(cert && key ? { certificate: { cert, key } } : {}),
  };
  return { credential, staleAtMs: staleAt(expirationTimestamp, deps) };
}

function staleAt(expirationTimestamp: string | undefined, { clock }: CredentialDeps): number {
  // biome-ignore lint/style/noRestrictedGlobals: parsing a timestamp is pure; the time of day comes from the clock.
  const expiresWallMs = expirationTimestamp === undefined ? Number.NaN : Date.parse(expirationTimestamp);
  // Without an expiry it is valid until the server rejects it.
  if (Number.isNaN(expiresWallMs)) return Number.POSITIVE_INFINITY;
  return clock.nowMs() + (expiresWallMs - clock.wallMs()) - expiryLeewayMs;
}

function parseQuietly(text: string): { apiVersion?: string; status?: ExecStatus } | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
