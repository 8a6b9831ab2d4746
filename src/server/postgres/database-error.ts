// Classifies PostgreSQL failures: those that undid everything and may be retried, those
// with an unknown outcome, and bugs of ours.
import { CodedError } from "../../errors/coded-error.ts";
import type { ErrorCode } from "../../errors/error-catalogue.ts";

export type FailureKind = ErrorCode<"DatabaseFailure">;

/** A statement that failed. Its message is for the log, not for clients. */
export class DatabaseFailure extends CodedError<"DatabaseFailure"> {
  override readonly name = "DatabaseFailure";

  constructor(cause: unknown, kind: FailureKind = failureKind(cause)) {
    super(kind, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const conflicts: readonly string[] = ["40001", "40P01"];
/** A lock or statement timeout, a database that became a standby, or one that is starting or stopping. */
const awayCodes: readonly string[] = ["55P03", "57014", "25006", "25P03"];
/** Connection errors, lack of resources, operator intervention, system errors. */
const awayClasses: readonly string[] = ["08", "53", "57", "58"];

export function failureKind(error: unknown): FailureKind {
  const code = sqlState(error);
  // An error without a PostgreSQL code came from the socket or from waiting for one.
  if (code === undefined) return "away";
  if (conflicts.includes(code)) return "conflict";
  return awayCodes.includes(code) || awayClasses.includes(code.slice(0, 2)) ? "away" : "refused";
}

export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
