// The error that the control-plane client throws. Callers branch on its code, which is a Connect code even if no server
// responded.
//
// - A code that blames the request (invalid_argument, not_found ...) always comes from the server. The RPC library uses
//   the same codes for a broken response; passing those on would drop a report because of a cut connection.
// - Text from the server reaches the message or the cause only after redaction, because servers quote the tokens they
//   reject (K7).

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

/** The names of the codes on the wire. */
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

/**
 * How far a failed call came: to the server, which answered; to a connection that broke; or nowhere, because the address
 * is unknown or refuses connections.
 */
export type Reach = "answered" | "broken" | "unreachable";

export interface ControlPlaneErrorFacts {
  /** The wait that the server asked for, already clamped. */
  readonly retryAfterMs?: number | undefined;
  /** Default "broken". */
  readonly reach?: Reach;
  readonly cause?: unknown;
}

export class ControlPlaneError extends CodedError<"ControlPlaneError"> {
  override readonly name = "ControlPlaneError";
  readonly retryAfterMs: number | undefined;
  readonly reach: Reach;

  constructor(code: ControlPlaneCode, message: string, facts: ControlPlaneErrorFacts = {}) {
    super(code, message, facts);
    this.retryAfterMs = facts.retryAfterMs;
    this.reach = facts.reach ?? "broken";
  }
}

// A proxy may respond with a whole HTML page, which must not end up in a log line.
const reasonCharsMax = 500;

/** Converts any error of a call; `operation` is the name of the RPC. */
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
    const facts = { retryAfterMs: retryHintMs(error), reach: "answered" } as const;
    return new ControlPlaneError(code, because(`${code}: ${reason}`), facts);
  }
  const reason = error instanceof ConnectError ? error.rawMessage : errorText(error);
  const reach = systemCodes(error).some((code) => unreachableCodes.has(code)) ? "unreachable" : "broken";
  return new ControlPlaneError(codeWithoutAnswer(error), because(reason), { reach, cause: causeOf(error) });
}

/**
 * Whether the error came from the server: a response always has headers, and an error that the RPC library creates has
 * none.
 */
function isAnswer(error: ConnectError): boolean {
  return error.metadata.keys().next().done !== true;
}

function codeWithoutAnswer(error: unknown): ControlPlaneCode {
  const cause = causeOf(error);
  if (cause instanceof DeadlineError) return "deadline_exceeded";
  // The token cannot be read, so the server would reject the call.
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
      // A system error as its cause means that the connection failed, not that the response was invalid.
      return hasSystemError(error) ? "unavailable" : "internal";
    default:
      return "unavailable";
  }
}

const causeDepthMax = 8;

function hasSystemError(error: unknown): boolean {
  return systemCodes(error).length > 0;
}

// No connection was made: the name is unknown, or there is no server at the address, or no way to it.
const unreachableCodes: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

function systemCodes(error: unknown): readonly string[] {
  const codes: string[] = [];
  let current = error;
  for (let depth = 0; depth < causeDepthMax && current instanceof Error; depth++) {
    if ("code" in current && typeof current.code === "string") codes.push(current.code);
    current = current.cause;
  }
  return codes;
}

/** The cause inside the library's wrapper, whose text is already in the message. */
function causeOf(error: unknown): unknown {
  return error instanceof ConnectError ? error.cause : error;
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const retryInfoType = "google.rpc.RetryInfo";
const retryDelayField = 1;

/**
 * The wait that a busy server asked for, clamped: from a google.rpc.RetryInfo in the error's details, or from a
 * Retry-After header, which proxies send. Only its form in seconds is read; a date would need synchronous clocks.
 */
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
    // An unreadable hint is ignored; the error still counts.
  }
  return undefined;
}

function fromHeader(value: string | null): number | undefined {
  const seconds = /^\s*(\d{1,9})\s*(?:,|$)/.exec(value ?? "")?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
