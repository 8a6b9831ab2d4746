// Exit codes, after sysexits.h, so that a supervisor can tell failures that a restart cannot fix (64, 78) from those
// that it may fix (1, 70). The error catalogue maps error codes to them.
import { AssertionError } from "node:assert";
import { AgentError } from "../agent/agent-error.ts";
import { CodedError } from "../errors/coded-error.ts";
import { findErrorEntry } from "../errors/error-catalogue.ts";
import type { ErrorExit } from "../errors/error-entry.ts";
import { RuntimeError } from "../runtime/runtime-error.ts";
import type { StopSignal } from "./io.ts";

export const exitCodes = {
  ok: 0,
  /** Something outside krane failed: a port is in use, a clean-up timed out. */
  failure: 1,
  /** `diff` found a difference. */
  different: 2,
  /** The object does not exist. */
  notFound: 3,
  /** The command line is wrong. */
  usage: 64,
  /** The control plane is unreachable. */
  unreachable: 69,
  /** A bug in krane. */
  bug: 70,
  /** The token was rejected, or lacks the permission. */
  denied: 77,
  /** The configuration, or a file that it names, is invalid. */
  config: 78,
  /** As in shells: the command to run is not executable. */
  commandUnusable: 126,
  /** As in shells: command not found. */
  commandMissing: 127,
} as const satisfies Readonly<Record<ErrorExit, number>> & Readonly<Record<string, number>>;

/** The exit code that a shell reports for a process ended by the signal: 130 or 143. */
export function exitCodeOfSignal(signal: StopSignal): number {
  return signal === "SIGINT" ? 130 : 143;
}

/** A bug outranks every other cause; several different causes exit with `failure`. */
export function exitCodeOf(error: unknown): number {
  const causes = leavesOf(error);
  if (causes.some(isBug)) return exitCodes.bug;
  const [code = exitCodes.failure, ...others] = new Set(causes.map(exitCodeOfCause));
  return others.length === 0 ? code : exitCodes.failure;
}

function exitCodeOfCause(error: unknown): number {
  const entry = error instanceof CodedError ? findErrorEntry(error) : undefined;
  return exitCodes[entry?.exit ?? "failure"];
}

/** The individual errors inside an AggregateError. */
export function leavesOf(error: unknown): readonly unknown[] {
  return error instanceof AggregateError ? error.errors.flatMap(leavesOf) : [error];
}

/** Whether the error, or one that it wraps, can only come from a bug. */
export function isBug(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const isWrapper = error instanceof AgentError || error instanceof RuntimeError;
  if (isWrapper && error.cause !== undefined) return leavesOf(error.cause).some(isBug);
  return [TypeError, RangeError, ReferenceError, AssertionError].some((type) => error instanceof type);
}
