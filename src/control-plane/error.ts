// The one error that the control-plane client throws. Its code is what callers branch
// on, and it is a Connect code also where no server ever answered.
//
// - A code that condemns the request (invalid_argument, not_found ...) is the server's
//   own answer. The RPC library uses the same codes for a broken answer; taken at its
//   word, a cut connection would be the end of a report.
// - Neither the text nor the cause holds what the server wrote without going through
//   the redaction of the caller, because servers quote the tokens they refuse (K7).

import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { DurationSchema, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { DeadlineError } from "../concurrency/abort.ts";
import { clampRetryAfterMs } from "../concurrency/backoff.ts";
import { ConfigError } from "../config/error.ts";
import { CodedError } from "../errors/coded-error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";
import { scrub } from "../telemetry/scrub.ts";

/** The codes as they stand on the wire. */
export const codeNames = {
  [Code.Canceled]: "canceled",
  [Code.Unknown]: "unknown",
  [Code.InvalidArgument]: "invalid_argument",
  [Code.DeadlineExceeded]: "deadline_exceeded",
  [Code.NotFound]: "not_found",
  [Code.AlreadyExists]: "already_exists",
  [Code.PermissionDenied]: "permission_denied",
  [Code.ResourceExhausted]: "resource_exhausted",
  [Code.FailedPrecondition]: "failed_precondition",
  [Code.Aborted]: "aborted",
  [Code.OutOfRange]: "out_of_range",
  [Code.Unimplemented]: "unimplemented",
  [Code.Internal]: "internal",
  [Code.Unavailable]: "unavailable",
  [Code.DataLoss]: "data_loss",
  [Code.Unauthenticated]: "unauthenticated",
} as const satisfies Record<Code, ControlPlaneCode>;

export type ControlPlaneCode = ErrorCode<"ControlPlaneError">;

export interface ControlPlaneErrorFacts {
  /** When the server wants to be asked again, already clamped. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export class ControlPlaneError extends CodedError<"ControlPlaneError"> {
  override readonly name = "ControlPlaneError";
  readonly retryAfterMs: number | undefined;

  constructor(code: ControlPlaneCode, message: string, facts: ControlPlaneErrorFacts = {}) {
    super(code, message, facts);
    this.retryAfterMs = facts.retryAfterMs;
  }
}

// A proxy may answer with a whole page; a log line must not hold it.
const reasonCharsMax = 500;

/** Whatever a call failed with, as the one error; `operation` is the name of the RPC. */
export function controlPlaneError(
  operation: string,
  error: unknown,
  redact: (text: string) => string,
): ControlPlaneError {
  if (error instanceof ControlPlaneError) return error;
  const because = (reason: string) => `${operation}: ${scrub(redact(reason), reasonCharsMax)}`;
  if (error instanceof ConnectError && isAnswer(error)) {
    const code = codeNames[error.code];
    const reason = error.rawMessage === "" ? "refused without a reason" : error.rawMessage;
    return new ControlPlaneError(code, because(`${code}: ${reason}`), { retryAfterMs: retryHintMs(error) });
  }
  const reason = error instanceof ConnectError ? error.rawMessage : errorText(error);
  return new ControlPlaneError(codeWithoutAnswer(error), because(reason), { cause: causeOf(error) });
}

/**
 * Whether the error came over the wire: an answer always has headers, and an error that
 * the RPC library makes by itself has none.
 */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.keys().next().done !== true;
}

function codeWithoutAnswer(error: unknown): ControlPlaneCode {
  const cause = causeOf(error);
  if (cause instanceof DeadlineError) return "deadline_exceeded";
  // There is no token to send; what the server would say to that is known.
  if (cause instanceof ConfigError) return "unauthenticated";
  if (!(error instanceof ConnectError)) return "unknown";
  switch (error.code) {
    case Code.DeadlineExceeded:
    case Code.ResourceExhausted:
    case Code.Unimplemented:
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      return codeNames[error.code];
    case Code.Internal:
    case Code.InvalidArgument:
    case Code.Unknown:
      // A system error below it means that the connection failed, not that the answer was bad.
      return hasSystemError(error) ? "unavailable" : "internal";
    default:
      return "unavailable";
  }
}

const causeDepthMax = 8;

function hasSystemError(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < causeDepthMax && current instanceof Error; depth++) {
    if ("code" in current && typeof current.code === "string") return true;
    current = current.cause;
  }
  return false;
}

/** What is below the library's own wrapper, whose text is in the message already. */
function causeOf(error: unknown): unknown {
  return error instanceof ConnectError ? error.cause : error;
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

// A server that is busy can say when to come back: as a google.rpc.RetryInfo beside the
// error, or as a Retry-After header, which is what proxies send. Of the header only the
// form in seconds is read; a date would have to trust that both clocks agree.

const retryInfoType = "google.rpc.RetryInfo";
const retryDelayField = 1;

/** The wait that the server asked for, kept within sane limits; undefined when it asked for none. */
export function retryHintMs(error: ConnectError): number | undefined {
  const hintMs = fromDetails(error) ?? fromHeader(error.metadata.get("retry-after"));
  return hintMs === undefined ? undefined : clampRetryAfterMs(hintMs);
}

function fromDetails(error: ConnectError): number | undefined {
  for (const detail of error.details) {
    if (!("type" in detail) || detail.type !== retryInfoType) continue;
    const delayMs = parseRetryInfo(detail.value);
    if (delayMs !== undefined) return delayMs;
  }
  return undefined;
}

function parseRetryInfo(bytes: Uint8Array): number | undefined {
  try {
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === retryDelayField && wireType === WireType.LengthDelimited)
        return durationMs(fromBinary(DurationSchema, reader.bytes()));
      reader.skip(wireType, field);
    }
  } catch {
    // A hint that cannot be read is no hint; the error it came with still counts.
  }
  return undefined;
}

function fromHeader(value: string | null): number | undefined {
  const seconds = /^\s*(\d{1,9})\s*(?:,|$)/.exec(value ?? "")?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
