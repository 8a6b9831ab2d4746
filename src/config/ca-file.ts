// Reads CA certificates from a file that may be renewed, such as the one that Kubernetes mounts into pods. Each new
// connection gets the last known certificates and triggers a reload for the next one, so a connection that fails because
// the CA has changed fails only once.
//
// The reload runs in the background, because connections are opened by synchronous code. If the file is unreadable or
// has no certificate, the last good certificates stay in use.
import { X509Certificate } from "node:crypto";

/** PEM certificates to trust: fixed, or a function that returns the current ones. */
export type TrustedCa = string | (() => string);

export interface CaFileDeps {
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Called when a reload fails and the last good certificates stay in use. */
  onFailure?(error: unknown): void;
}

const ageMaxMs = 5_000;

/** Rejects when the file cannot be read. */
export async function openCaFile(path: string, deps: CaFileDeps, signal: AbortSignal): Promise<TrustedCa> {
  let good = await deps.readTextFile(path, signal);
  let lookedAtMs = deps.nowMs();
  let isLooking = false;
  const look = async () => {
    try {
      // Not abortable, because nothing waits for it. While it hangs, no second read starts.
      const text = await deps.readTextFile(path, new AbortController().signal);
      if (text !== good) new X509Certificate(text);
      good = text;
    } catch (error) {
      deps.onFailure?.(error);
    } finally {
      isLooking = false;
      lookedAtMs = deps.nowMs();
    }
  };
  return () => {
    if (!isLooking && deps.nowMs() - lookedAtMs >= ageMaxMs) {
      isLooking = true;
      void look();
    }
    return good;
  };
}

export function pemOf(ca: TrustedCa): string {
  return typeof ca === "string" ? ca : ca();
}
