// Who krane is to the API server, and for how long. A source hands out the credential of the
// moment; after a 401 it is asked to renew the one that was refused. Each source reads the outside
// world at most once at a time, however many requests are waiting for it.
import type { Clock } from "../concurrency/clock.ts";
import type { TrustedCa } from "../config/ca-file.ts";
import { KubeApiError } from "./errors.ts";

export interface Credential {
  /** The whole value of the Authorization header. */
  readonly authorization?: string;
  readonly certificate?: ClientCertificate;
}

export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface CredentialSource {
  current(signal: AbortSignal): Promise<Credential>;
  /** Called after a 401. Returns the same credential again if there is no other one. */
  renew(refused: Credential, signal: AbortSignal): Promise<Credential>;
}

/** Where the API server is, how to know it, and who we are. */
export interface KubeEndpoint {
  /** Scheme, host, port and, behind some proxies, a path prefix. */
  readonly server: string;
  readonly ca?: TrustedCa;
  readonly serverName?: string;
  /** Only ever what a kubeconfig says in so many words. */
  readonly insecureSkipTlsVerify?: boolean;
  readonly credentials: CredentialSource;
}

/** How credentials reach the world outside the process. */
export interface CredentialDeps {
  readonly clock: Clock;
  readonly readTextFile: (path: string, signal: AbortSignal) => Promise<string>;
  readonly runCommand: RunCommand;
}

export type RunCommand = (command: CommandLine, signal: AbortSignal) => Promise<CommandResult>;

export interface CommandLine {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment that the process has anyway. */
  readonly env: Readonly<Record<string, string>>;
}

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
}

export function fixedCredential(credential: Credential): CredentialSource {
  return { current: async () => credential, renew: async () => credential };
}

export interface LoadedCredential {
  readonly credential: Credential;
  /** Monotonic; after this it is loaded again. */
  readonly staleAtMs: number;
}

// A refused or unreadable credential is loaded anew, but an API server that refuses everything must
// not make us read files, let alone start programs, once per request.
const reloadPauseMs = 1_000;

/**
 * Keeps what `load` returned until it is stale or refused. Loads never overlap. A stale credential
 * that cannot be loaded anew stays in use: it may well still be good, and only the server knows.
 */
export function cachedCredential(
  clock: Clock,
  load: (signal: AbortSignal) => Promise<LoadedCredential>,
): CredentialSource {
  let loaded: LoadedCredential | undefined;
  let endedAtMs = Number.NEGATIVE_INFINITY;
  let failure: unknown;
  let loading: { readonly done: Promise<void>; readonly signal: AbortSignal } | undefined;

  const loadOnce = async (signal: AbortSignal): Promise<void> => {
    try {
      const fresh = await load(signal);
      const same = loaded !== undefined && sameCredential(loaded.credential, fresh.credential);
      loaded = same && loaded ? { ...fresh, credential: loaded.credential } : fresh;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      endedAtMs = clock.nowMs();
      loading = undefined;
    }
  };

  const reload = async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      loading ??= { done: loadOnce(signal), signal };
      const joined = loading;
      try {
        return await joined.done;
      } catch (error) {
        // Whoever began this load has given up, which says nothing about the credential.
        if (joined.signal === signal || !joined.signal.aborted) throw error;
        signal.throwIfAborted();
      }
    }
  };

  const mayReload = () => clock.nowMs() - endedAtMs >= reloadPauseMs;

  return {
    async current(signal) {
      const isStale = loaded === undefined || clock.nowMs() >= loaded.staleAtMs;
      if (isStale && mayReload()) {
        await reload(signal).catch((error: unknown) => {
          signal.throwIfAborted();
          if (loaded === undefined) throw error;
        });
      }
      if (loaded === undefined) throw failure;
      return loaded.credential;
    },
    async renew(refused, signal) {
      if (loaded?.credential === refused && mayReload()) await reload(signal);
      return loaded?.credential ?? refused;
    },
  };
}

function sameCredential(a: Credential, b: Credential): boolean {
  return (
    a.authorization === b.authorization &&
    a.certificate?.cert === b.certificate?.cert &&
    a.certificate?.key === b.certificate?.key
  );
}

export function credentialError(message: string, cause?: unknown): KubeApiError {
  return new KubeApiError("credentials", message, cause === undefined ? {} : { cause });
}
