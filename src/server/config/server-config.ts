// Turns (file text, environment variables, flags) into a server's configuration, or into
// the complete list of problems.
import type { LogLevel } from "../../config/config.ts";
import type { ProcessEnv } from "../../config/expand.ts";
import { isLoopbackHost } from "../../config/insecure-url.ts";
import { type ConfigProblem, problemAt, sortProblems } from "../../config/problem.ts";
import { Resolution } from "../../config/resolve.ts";
import { checkAllOrNothing, waysToSet } from "../../config/rules.ts";
import type { SecretRef } from "../../config/secret.ts";
import type { Setting } from "../../config/setting.ts";
import { type ConfigFile, readToml } from "../../config/toml-document.ts";
import { findUnknownKeys } from "../../config/unknown-keys.ts";
import type { TlsFiles } from "../../http/tls-certificate.ts";
import type { LogOptions } from "../../telemetry/log.ts";
import type { HistoryRetention } from "../store.ts";
import { type ListenAddress, parseListen } from "./server-setting-types.ts";
import { allServerSettings, serverSettings as s, serverChoices, serverSections } from "./server-settings.ts";

export type DatabaseChoice =
  | { readonly kind: "url"; readonly url: SecretRef }
  | { readonly kind: "embedded"; readonly dataDir: string; readonly postgresBin: string | undefined };

export interface TracingChoice {
  readonly sampleRate: number;
  /** The standard OpenTelemetry variables: where to export to, and which parts are off. */
  readonly env: ProcessEnv;
}

export interface OidcChoice {
  readonly publicUrl: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: SecretRef | undefined;
  readonly scopes: readonly string[];
  readonly nameClaim: string;
  readonly groupsClaim: string;
  /** Lines of group, role and regions. */
  readonly roles: readonly string[];
}

export interface ServerConfig {
  readonly listen: ListenAddress;
  readonly tls: TlsFiles | undefined;
  readonly database: DatabaseChoice;
  /** Undefined only with an embedded database: tokens are then generated. */
  readonly agentTokens: SecretRef | undefined;
  /** Undefined means no admin API; with an embedded database, tokens are generated. */
  readonly adminTokens: SecretRef | undefined;
  /** Undefined where people sign in with tokens only. */
  readonly oidc: OidcChoice | undefined;
  readonly streamsPerSecond: number;
  readonly history: HistoryRetention;
  readonly logLevel: LogLevel;
  readonly logSampling: LogOptions["sampling"];
  /** Undefined while OTLP is off. */
  readonly tracing: TracingChoice | undefined;
  /** 0 turns metrics off. */
  readonly prometheusPort: number;
}

export interface ServerConfigInput {
  readonly file?: ConfigFile;
  readonly env: ProcessEnv;
  /** By name, without dashes. */
  readonly flags: Readonly<Record<string, string>>;
}

export type ServerConfigOutcome =
  | { readonly kind: "valid"; readonly config: ServerConfig }
  | { readonly kind: "invalid"; readonly problems: readonly ConfigProblem[] };

export function parseServerConfig({ file, env, flags }: ServerConfigInput): ServerConfigOutcome {
  const toml = file && readToml(file);
  const document = toml?.kind === "document" ? toml.document : undefined;
  const facts = { hasSection: (name: string) => document?.hasSection(name) ?? false, randomId: () => "" };
  const resolution = new Resolution({ flags, env, document }, facts, serverChoices);
  const problems = resolution.resolve();
  if (toml?.kind === "broken") problems.push(toml.problem);
  else {
    problems.push(...checkRules(resolution));
    const known = { settings: allServerSettings, sections: serverSections };
    if (document !== undefined) problems.push(...findUnknownKeys(document, known));
  }
  if (problems.length > 0) return { kind: "invalid", problems: sortProblems(problems) };
  return { kind: "valid", config: build(resolution, env) };
}

function checkRules(resolution: Resolution): ConfigProblem[] {
  return [
    ...checkAllOrNothing(resolution, "tls", [s.tlsCertFile, s.tlsKeyFile]),
    ...checkDatabase(resolution),
    ...checkTokens(resolution),
    ...checkOpenPort(resolution),
    ...checkOidc(resolution),
  ];
}

function checkDatabase(resolution: Resolution): ConfigProblem[] {
  const hasUrl = resolution.isSet(s.databaseUrl);
  const hasFolder = resolution.isSet(s.dataDir);
  if (!hasUrl && !hasFolder) {
    const remedy = `${waysToSet(s.dataDir)}; or, for an existing PostgreSQL, ${s.databaseUrl.path}`;
    return [problemAt(s.dataDir.path, resolution.fileOrigin, "is required", remedy)];
  }
  if (hasUrl && hasFolder) {
    const message = `is set, and so is ${s.databaseUrl.path}`;
    return [problemAt(s.dataDir.path, resolution.originOf(s.dataDir), message, "keep one of the two")];
  }
  return [];
}

function checkTokens(resolution: Resolution): ConfigProblem[] {
  if (resolution.isSet(s.agentTokens) || !resolution.isSet(s.databaseUrl)) return [];
  const message = "is required with an external database";
  return [problemAt(s.agentTokens.path, resolution.fileOrigin, message, waysToSet(s.agentTokens))];
}

/** A token sent over a network in plain text is compromised. */
function checkOpenPort(resolution: Resolution): ConfigProblem[] {
  const listen = parseListen(resolution.value(s.listen) ?? "");
  if (listen === undefined || isLoopbackHost(listen.host)) return [];
  if (resolution.isSet(s.tlsCertFile) || resolution.value(s.allowInsecure) !== false) return [];
  const remedy = `set ${s.tlsCertFile.path} and ${s.tlsKeyFile.path}, or ${s.allowInsecure.path} = true`;
  const message = "would accept tokens over plain HTTP from other machines";
  return [problemAt(s.listen.path, resolution.originOf(s.listen), message, remedy)];
}

function checkOidc(resolution: Resolution): ConfigProblem[] {
  const needed = [s.oidcIssuer, s.oidcClientId, s.oidcRoles, s.oidcPublicUrl];
  const problems = checkAllOrNothing(resolution, "server.oidc", needed);
  const add = (setting: Setting<unknown>, message: string, remedy: string) =>
    problems.push(problemAt(setting.path, resolution.originOf(setting), message, remedy));
  for (const setting of [s.oidcIssuer, s.oidcPublicUrl]) {
    const text = resolution.value(setting);
    if (text === undefined || text.startsWith("https:")) continue;
    if (!isLoopbackHost(new URL(text).hostname.replace(/^\[|\]$/g, "")))
      add(
        setting,
        "uses plain HTTP, with which anybody on the way can sign in as somebody else",
        "write https://",
      );
  }
  if (resolution.value(s.oidcScopes)?.includes("openid") === false)
    add(s.oidcScopes, "does not have the scope openid", "add it: providers name nobody without it");
  const hasPeople = resolution.isSet(s.adminTokens) || !resolution.isSet(s.databaseUrl);
  if (resolution.isSet(s.oidcIssuer) && !hasPeople)
    add(
      s.oidcIssuer,
      `needs ${s.adminTokens.path}, without which there is no admin API`,
      waysToSet(s.adminTokens),
    );
  return problems;
}

/** Environment variables may hold tokens, the database URL and keys in headers, and the config can be shown (K7). */
function otelVariables(env: ProcessEnv): ProcessEnv {
  const isWanted = (name: string) => name.startsWith("OTEL_") && !name.endsWith("_HEADERS");
  return Object.fromEntries(Object.entries(env).filter(([name]) => isWanted(name)));
}

function build(resolution: Resolution, env: ProcessEnv): ServerConfig {
  const need = <T>(setting: Setting<T>): T => present(resolution.value(setting), setting);
  const url = resolution.secret(s.databaseUrl);
  const oidc = (): OidcChoice => ({
    publicUrl: need(s.oidcPublicUrl),
    issuer: need(s.oidcIssuer),
    clientId: need(s.oidcClientId),
    clientSecret: resolution.secret(s.oidcClientSecret),
    scopes: need(s.oidcScopes),
    nameClaim: need(s.oidcNameClaim),
    groupsClaim: need(s.oidcGroupsClaim),
    roles: need(s.oidcRoles),
  });
  return {
    listen: present(parseListen(need(s.listen)), s.listen),
    tls: resolution.isSet(s.tlsCertFile)
      ? { certFile: need(s.tlsCertFile), keyFile: need(s.tlsKeyFile) }
      : undefined,
    database:
      url === undefined
        ? { kind: "embedded", dataDir: need(s.dataDir), postgresBin: resolution.value(s.postgresBin) }
        : { kind: "url", url },
    agentTokens: resolution.secret(s.agentTokens),
    adminTokens: resolution.secret(s.adminTokens),
    oidc: resolution.isSet(s.oidcIssuer) ? oidc() : undefined,
    streamsPerSecond: need(s.streamRate),
    history: { ageMaxMs: need(s.historyAge), entriesMax: need(s.historyEntries) },
    logLevel: need(s.logLevel),
    logSampling: { rate: need(s.logSampleRate), slowThresholdMs: need(s.logSlowThreshold) },
    tracing: need(s.tracingEnabled)
      ? { sampleRate: need(s.tracingSampleRate), env: otelVariables(env) }
      : undefined,
    prometheusPort: need(s.prometheusPort),
  };
}

function present<T>(value: T | undefined, setting: Setting<unknown>): T {
  if (value === undefined) throw new Error(`${setting.path} has no value although the rules passed`);
  return value;
}
