// Reads every file that the configuration names before anything starts, so that a mistyped path is one clear error at
// startup instead of a call that fails hours later. All problems are reported together.
import type { Config } from "../config/config.ts";
import type { SecretRef } from "../config/secret.ts";
import { createSecretSource } from "../config/secret-source.ts";
import { loadCertificate } from "../http/tls-certificate.ts";
import { AgentError } from "./agent-error.ts";

export interface NamedFilesDeps {
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** Returns one error for each unusable file. Each message begins with the setting that names the file. */
export async function findUnusableFiles(
  config: Config,
  deps: NamedFilesDeps,
  signal: AbortSignal,
): Promise<readonly AgentError[]> {
  const problems = await problemsOf(signal, [
    ...secretsOf(config).map((ref) => createSecretSource(ref, { ...deps, nowMs: () => 0 }).current(signal)),
    ...plainFilesOf(config).map(([setting, path]) => readPlainFile(setting, path, deps, signal)),
  ]);
  if (problems.length > 0 || !config.tls) return problems;
  return problemsOf(signal, [loadCertificate(config.tls, deps, signal)]);
}

async function problemsOf(signal: AbortSignal, reads: readonly Promise<unknown>[]): Promise<AgentError[]> {
  const outcomes = await Promise.allSettled(reads);
  signal.throwIfAborted();
  return outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [asAgentError(outcome.reason)] : []));
}

/** Rejects when at least one file cannot be used. */
export async function checkNamedFiles(
  config: Config,
  deps: NamedFilesDeps,
  signal: AbortSignal,
): Promise<void> {
  const [first, ...others] = await findUnusableFiles(config, deps, signal);
  if (first === undefined) return;
  if (others.length === 0) throw first;
  throw new AggregateError([first, ...others], "files named in the configuration cannot be used");
}

function secretsOf({ control, registry, vault, sealKeys, scheduler, agent }: Config): SecretRef[] {
  const embedded = vault?.kind === "embedded" ? vault : undefined;
  return [
    control.token,
    registry?.password,
    vault?.kind === "remote" ? vault.token : undefined,
    embedded?.masterKeys,
    embedded?.storage.kind === "s3" ? embedded.storage.accessKeySecret : undefined,
    sealKeys,
    scheduler?.token,
    agent?.token,
  ].filter((ref) => ref !== undefined);
}

function plainFilesOf({
  tls,
  control,
  kubernetes,
  vault,
}: Config): (readonly [setting: string, path: string])[] {
  const named: (readonly [string, string | undefined])[] = [
    ["tls.cert_file", tls?.certFile],
    ["tls.key_file", tls?.keyFile],
    ["control.ca_file", control.caFile],
    ["kubernetes.kubeconfig", kubernetes.kubeconfig],
    ["vault.ca_file", vault?.kind === "remote" ? vault.caFile : undefined],
  ];
  return named.flatMap(([setting, path]) => (path === undefined ? [] : [[setting, path] as const]));
}

async function readPlainFile(
  setting: string,
  path: string,
  deps: NamedFilesDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
    await deps.readTextFile(path, signal);
  } catch (cause) {
    throw new AgentError("file_unusable", `${setting}: cannot read ${path}`, { cause });
  }
}

// The file system's error (no such file, permission denied) is the useful part.
function asAgentError(error: unknown): AgentError {
  const cause = error instanceof Error ? error.cause : undefined;
  const reason = cause instanceof Error ? `: ${cause.message}` : "";
  const message = error instanceof Error ? error.message : String(error);
  return new AgentError("file_unusable", message.endsWith(reason) ? message : `${message}${reason}`, {
    cause: error,
  });
}
