// Checks the files that a server or vault configuration names by reading them as a start would. All problems are
// reported at once, each starting with the setting that names the file.
import type { VaultProgramConfig } from "../config/config.ts";
import type { Secret, SecretRef } from "../config/secret.ts";
import { createSecretSource } from "../config/secret-source.ts";
import type { SecretType } from "../config/secret-types.ts";
import { loadCertificate } from "../http/tls-certificate.ts";
import type { ServerConfig } from "../server/config/server-config.ts";
import { serverSettings } from "../server/config/server-settings.ts";
import { tokensApart } from "../server/tokens-apart.ts";
import { parseMasterKeys } from "../vault/master-keys.ts";
import type { Io } from "./io.ts";

/** One error for each unusable file, and for each token that is in both token lists. */
export async function findServerFileProblems(
  { database, agentTokens, adminTokens, tls }: ServerConfig,
  io: Io,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const [agents, people, ...others] = await Promise.allSettled([
    loadSecret(agentTokens, io, signal, serverSettings.agentTokens.kind),
    loadSecret(adminTokens, io, signal, serverSettings.adminTokens.kind),
    loadSecret(
      database.kind === "url" ? database.url : undefined,
      io,
      signal,
      serverSettings.databaseUrl.kind,
    ),
    tls && loadCertificate(tls, io, signal),
  ]);
  const shared =
    agents.status === "fulfilled" && people.status === "fulfilled" && people.value !== undefined
      ? tokensApart(people.value, agents.value).problems
      : [];
  return [...reasonsOf([...others, agents, people]), ...shared];
}

export async function findVaultFileProblems(
  { vault, token, tls }: VaultProgramConfig,
  io: Io,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const embedded = vault.kind === "embedded" ? vault : undefined;
  const s3 = embedded?.storage.kind === "s3" ? embedded.storage : undefined;
  const loadMasterKeys = async () => {
    const keys = await loadSecret(embedded?.masterKeys, io, signal);
    if (keys !== undefined) parseMasterKeys(keys.reveal());
  };
  return reasonsOf(
    await Promise.allSettled([
      loadSecret(token, io, signal),
      loadMasterKeys(),
      loadSecret(s3?.accessKeySecret, io, signal),
      tls && loadCertificate(tls, io, signal),
    ]),
  );
}

/** `kind` defaults to that of the agent's setting of the same name. */
async function loadSecret(
  ref: SecretRef | undefined,
  { readTextFile }: Io,
  signal: AbortSignal,
  kind?: SecretType,
): Promise<Secret | undefined> {
  return ref && createSecretSource(ref, { readTextFile, nowMs: () => 0 }, kind).current(signal);
}

function reasonsOf(outcomes: readonly PromiseSettledResult<unknown>[]): readonly unknown[] {
  return outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
}
