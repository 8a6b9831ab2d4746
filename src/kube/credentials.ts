// Credentials for the API server. A source returns the current credential; after a 401 it is asked to renew the
// rejected one. Each source loads at most once at a time, however many requests wait for it.
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
  /** Called after a 401. Returns the same credential if it cannot be renewed. */
  renew(refused: Credential, signal: AbortSignal): Promise<Credential>;
}

/** Where the API server is, how to verify it, and the credentials for it. */
export interface KubeEndpoint {
  /** Scheme, host, port and, behind some proxies, a path prefix. */
  readonly server: string;
  readonly ca?: TrustedCa;
  readonly serverName?: string;
  /** Set only if a kubeconfig says so explicitly. */
  readonly insecureSkipTlsVerify?: boolean;
  readonly credentials: CredentialSource;
}

/** The I/O that credentials need. */
export interface CredentialDeps {
  readonly clock: Clock;
  readonly readTextFile: (path: string, signal: AbortSignal) => Promise<string>;
  readonly runCommand: RunCommand;
}

export type RunCommand = (command: CommandLine, signal: AbortSignal) => Promise<CommandResult>;

export interface CommandLine {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
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
  /** Monotonic time after which it is loaded again. */
  readonly staleAtMs: number;
}

// A rejected or unreadable credential is loaded again. But an API server that rejects everything must not make krane
// read files, let alone start programs, for every request.
const reloadPauseMs = 1_000;

/**
 * Caches what `load` returned until it is stale or rejected. Loads never overlap. If a stale credential cannot be
 * loaded again, it stays in use: it may still be valid, and only the server knows.
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
        // The caller that started this load aborted, which says nothing about the credential.
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
