// The CA certificates of a file that somebody else renews, as Kubernetes does with the one that it mounts
// into pods. Whoever opens a connection asks for them, and asking makes sure that the next one gets what
// stands in the file now: a connection that fails because the CA has changed fails once.
//
// Connections are opened by code that cannot wait, so a read goes on beside it. A file that cannot be read,
// or holds no certificate, keeps the last good ones in use.
import { X509Certificate } from "node:crypto";

/** PEM certificates to trust: always the same, or those of the moment. */
export type TrustedCa = string | (() => string);

export interface CaFileDeps {
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Told when the file fails while the last good certificates stay in use. */
  onFailure?(error: unknown): void;
}

const ageMaxMs = 5_000;

/** Rejects where the file cannot be read. */
export async function openCaFile(path: string, deps: CaFileDeps, signal: AbortSignal): Promise<TrustedCa> {
  let good = await deps.readTextFile(path, signal);
  let lookedAtMs = deps.nowMs();
  let isLooking = false;
  const look = async () => {
    try {
      // Nobody waits for it, and while it hangs there is no second one.
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
