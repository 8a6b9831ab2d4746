// Loads the TLS certificate of a port and picks up renewals. The files are read every 10 s and compared by content,
// because Kubernetes swaps a symbolic link two levels up, which file watching does not notice.
//
// An unusable renewal (half written, or with the wrong key) leaves the current certificate in use. It is logged once,
// not at every read, and again if it comes back after the files were good.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { Clock } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import { ServiceError } from "./service-error.ts";

const lookEveryMs = 10_000;

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateDeps {
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** Reads both files and checks that they belong together. */
export async function loadCertificate(
  files: TlsFiles,
  deps: Pick<CertificateDeps, "readTextFile">,
  signal: AbortSignal,
): Promise<CertificatePair> {
  const pair = await readPair(files, deps, signal);
  checkPair(files, pair);
  return pair;
}

/** Calls back with every usable renewal until stopped. */
export function watchCertificate(
  files: TlsFiles,
  inUse: CertificatePair,
  onRenewed: (pair: CertificatePair) => void,
  deps: CertificateDeps,
): { stop(): Promise<void> } {
  const stopped = new AbortController();
  let current = inUse;
  let lastProblem = "";
  const look = async () => {
    try {
      const pair = await readPair(files, deps, stopped.signal);
      if (pair.cert !== current.cert || pair.key !== current.key) {
        checkPair(files, pair);
        onRenewed(pair);
        current = pair;
        deps.log.info("certificate renewed", { file: files.certFile });
      }
      lastProblem = "";
    } catch (error) {
      if (stopped.signal.aborted || String(error) === lastProblem) return;
      lastProblem = String(error);
      deps.log.warn("certificate not renewed, keeping the one in use", { file: files.certFile, error });
    }
  };
  let looking: Promise<void> = Promise.resolve();
  const schedule = () =>
    deps.clock.setTimer(lookEveryMs, () => {
      looking = look().finally(() => {
        if (!stopped.signal.aborted) timer = schedule();
      });
    });
  let timer = schedule();
  return {
    async stop() {
      stopped.abort();
      timer.cancel();
      await looking;
    },
  };
}

async function readPair(
  files: TlsFiles,
  deps: Pick<CertificateDeps, "readTextFile">,
  signal: AbortSignal,
): Promise<CertificatePair> {
  const read = async (setting: string, path: string) => {
    try {
      return await deps.readTextFile(path, signal);
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ServiceError("certificate_unusable", `${setting}: cannot read ${path}: ${reason}`, { cause });
    }
  };
  const [cert, key] = await Promise.all([
    read("tls.cert_file", files.certFile),
    read("tls.key_file", files.keyFile),
  ]);
  return { cert, key };
}

function checkPair(files: TlsFiles, pair: CertificatePair): void {
  try {
    // createSecureContext alone treats an empty file as "no certificate", and every later handshake would fail.
    new X509Certificate(pair.cert);
    createPrivateKey(pair.key);
    createSecureContext(pair);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `tls.cert_file: ${files.certFile} and ${files.keyFile} cannot be used together: ${reason}`;
    throw new ServiceError("certificate_unusable", message, { cause });
  }
}
