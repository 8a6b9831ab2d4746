// What a failure of PostgreSQL means: which undid everything and may be tried again,
// which leave open what became of the work, and which are mistakes of ours.
import { CodedError } from "../../errors/coded-error.ts";
import type { ErrorCode } from "../../errors/error-catalogue.ts";

export type FailureKind = ErrorCode<"DatabaseFailure">;

/** A statement that failed. Its message is for the log and not for clients. */
export class DatabaseFailure extends CodedError<"DatabaseFailure"> {
  override readonly name = "DatabaseFailure";

  constructor(cause: unknown, kind: FailureKind = failureKind(cause)) {
    super(kind, cause instanceof Error ? cause.message : String(cause), { cause });
  }
}

const conflicts: readonly string[] = ["40001", "40P01"];
/** A lock or a statement that took too long, a database that became a standby, one that ends or starts. */
const awayCodes: readonly string[] = ["55P03", "57014", "25006", "25P03"];
/** Connection trouble, lack of resources, intervention by an operator, trouble of the system. */
const awayClasses: readonly string[] = ["08", "53", "57", "58"];

export function failureKind(error: unknown): FailureKind {
  const code = sqlState(error);
  // What has no code of PostgreSQL came from the socket or from the wait for one.
  if (code === undefined) return "away";
  if (conflicts.includes(code)) return "conflict";
  return awayCodes.includes(code) || awayClasses.includes(code.slice(0, 2)) ? "away" : "refused";
}

export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("severity" in error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
