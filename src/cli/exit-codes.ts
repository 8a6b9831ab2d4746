// Exit codes, after sysexits.h, so that a supervisor can tell "will not help to
// restart" (64, 78) from "may help" (1, 70). Which error leads to which stands in the
// catalogue of errors.
import { AssertionError } from "node:assert";
import { AgentError } from "../agent/agent-error.ts";
import { CodedError } from "../errors/coded-error.ts";
import { findErrorEntry } from "../errors/error-catalogue.ts";
import type { ErrorExit } from "../errors/error-entry.ts";
import { RuntimeError } from "../runtime/runtime-error.ts";
import type { StopSignal } from "./io.ts";

export const exitCodes = {
  ok: 0,
  /** Something outside failed: a port in use, a clean-up that did not end. */
  failure: 1,
  /** `diff` found a difference. */
  different: 2,
  /** There is no such object. */
  notFound: 3,
  /** The command line is wrong. */
  usage: 64,
  /** Nobody answers where the control plane should be. */
  unreachable: 69,
  /** krane itself is wrong. */
  bug: 70,
  /** The token is not known, or may not do this. */
  denied: 77,
  /** The configuration, or a file it names, is wrong. */
  config: 78,
  /** As shells say it: the command to run is no program. */
  commandUnusable: 126,
  /** As shells say it: there is no such command. */
  commandMissing: 127,
} as const satisfies Readonly<Record<ErrorExit, number>> & Readonly<Record<string, number>>;

/** What a shell reports for a process that the signal ended: 130 or 143. */
export function exitCodeOfSignal(signal: StopSignal): number {
  return signal === "SIGINT" ? 130 : 143;
}

/** The worst of all causes counts: a bug beside a failed clean-up is a bug. */
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

/** The single errors that several at once consist of. */
export function leavesOf(error: unknown): readonly unknown[] {
  return error instanceof AggregateError ? error.errors.flatMap(leavesOf) : [error];
}

/** Whether the error, or what it wraps, is one that correct code does not throw. */
export function isBug(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const isWrapper = error instanceof AgentError || error instanceof RuntimeError;
  if (isWrapper && error.cause !== undefined) return leavesOf(error.cause).some(isBug);
  return [TypeError, RangeError, ReferenceError, AssertionError].some((type) => error instanceof type);
}
