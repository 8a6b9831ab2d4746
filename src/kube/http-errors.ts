// What a broken exchange means. The words of the HTTP library end here; above are only a
// KubeApiError or the caller's own abort.
import { DeadlineError } from "../concurrency/abort.ts";
import { KubeApiError } from "./errors.ts";

const timeouts = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "ETIMEDOUT",
]);

const resets = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/** The error to throw; the signal's own reason where the caller gave up. */
export function exchangeError(what: string, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof KubeApiError) return error;
  if (error instanceof DeadlineError) {
    return new KubeApiError("timeout", `${what}: ${error.message}`, { cause: error });
  }
  const code = errorCode(error);
  // A bug in this process is no trouble of the network and must not be retried as if it were.
  if (code === undefined || code === "UND_ERR_INVALID_ARG") return error;
  const kind = timeouts.has(code) ? "timeout" : "network";
  const message = error instanceof Error && error.message !== "" ? error.message : code;
  return new KubeApiError(kind, `${what}: ${message}`, { cause: error });
}

/** Whether the connection went away before the first byte of an answer. */
export function breaksBeforeAnswer(error: unknown): boolean {
  return resets.has(errorCode(error) ?? "");
}

function errorCode(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
