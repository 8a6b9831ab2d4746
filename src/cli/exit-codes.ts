// Exit codes, after sysexits.h, so that a supervisor can tell "will not help to
// restart" (64, 78) from "may help" (1, 70).
import { AssertionError } from "node:assert";
import { AgentError } from "../agent/agent-error.ts";
import { ConfigError } from "../config/error.ts";
import { ServiceError } from "../http/service-error.ts";
import { RuntimeError } from "../runtime/runtime-error.ts";
import { EmbeddedError } from "../server/embedded/embedded-error.ts";
import { CommandError, type CommandErrorCode } from "./command-error.ts";
import { ExecError } from "./exec/exec-error.ts";
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
} as const;

/** What a shell reports for a process that the signal ended: 130 or 143. */
export function exitCodeOfSignal(signal: StopSignal): number {
  return signal === "SIGINT" ? 130 : 143;
}

const codesOfCommands: Readonly<Record<CommandErrorCode, number>> = {
  failed: exitCodes.failure,
  not_found: exitCodes.notFound,
  usage: exitCodes.usage,
  unreachable: exitCodes.unreachable,
  denied: exitCodes.denied,
  config: exitCodes.config,
};

/** The worst of all causes counts: a bug beside a failed clean-up is a bug. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof ExecError && error.code === "command_missing") return exitCodes.commandMissing;
  if (error instanceof ExecError && error.code === "command_unusable") return exitCodes.commandUnusable;
  if (error instanceof CommandError) return codesOfCommands[error.code];
  const causes = leavesOf(error);
  if (causes.some(isBug)) return exitCodes.bug;
  return causes.every(isConfigMistake) ? exitCodes.config : exitCodes.failure;
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

function isConfigMistake(error: unknown): boolean {
  return (
    error instanceof ConfigError ||
    (error instanceof AgentError && ["file_unusable", "cluster_unknown"].includes(error.code)) ||
    (error instanceof ServiceError && error.code === "certificate_unusable") ||
    (error instanceof EmbeddedError && ["binaries_missing", "data_dir_unusable"].includes(error.code)) ||
    (error instanceof ExecError && error.code === "setup_wrong")
  );
}
