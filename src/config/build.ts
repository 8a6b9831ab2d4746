// Builds the Config from resolved settings. Called only when there are no problems, so a missing value here is a bug in
// the rules.

import type {
  Config,
  GatewayConfig,
  ObservabilityConfig,
  RegionKey,
  VaultConfig,
  VaultProgramConfig,
  VaultStorageConfig,
} from "./config.ts";
import type { SettingOrigin } from "./problem.ts";
import type { Resolution } from "./resolve.ts";
import type { SecretRef } from "./secret.ts";
import type { SecretSetting, Setting } from "./setting.ts";
import { allSettings, settings } from "./settings.ts";

export function buildConfig(resolution: Resolution): Config {
  const need = <T>(setting: Setting<T>): T => present(resolution.value(setting), setting);
  const secret = (setting: SecretSetting): SecretRef => present(resolution.secret(setting), setting);

  const s = settings;
  const vault = buildVault(resolution);
  return {
    instanceId: need(s.instanceId),
    region: regionKey(need(s.region), resolution.value(s.platform)),
    rpcPort: need(s.rpcPort),
    ...optional("listenHost", resolution.value(s.listenHost)),
    ...optional("advertiseAddress", resolution.value(s.advertiseAddress)),
    ...(resolution.isSet(s.tlsCertFile) && {
      tls: { certFile: need(s.tlsCertFile), keyFile: need(s.tlsKeyFile) },
    }),
    control: {
      url: need(s.controlUrl),
      token: secret(s.controlToken),
      ...optional("caFile", resolution.value(s.controlCaFile)),
      allowInsecure: need(s.controlAllowInsecure),
    },
    kubernetes: {
      ...optional("kubeconfig", resolution.value(s.kubeconfig)),
      ...optional("namespace", resolution.value(s.kubernetesNamespace)),
    },
    lease: need(s.lease),
    ...(resolution.isSet(s.registryUrl) && {
      registry: {
        url: need(s.registryUrl),
        username: need(s.registryUsername),
        password: secret(s.registryPassword),
      },
    }),
    ...optional("vault", vault),
    secrets: {
      audience: need(s.secretsAudience),
      ...optional("endpoint", resolution.value(s.secretsEndpoint)),
      acceptDefaultAudience: need(s.secretsAcceptDefaultAudience),
    },
    ...optional("sealKeys", resolution.secret(s.sealKeys)),
    ...(resolution.isSet(s.schedulerToken) && {
      scheduler: { token: secret(s.schedulerToken), scrape: need(s.schedulerScrape) },
    }),
    ...(resolution.isSet(s.agentToken) && { agent: { token: secret(s.agentToken) } }),
    logs: { enabled: need(s.logsEnabled) },
    reconcile: { workers: need(s.reconcileWorkers) },
    deletion: {
      mode: need(s.deletionMode),
      confirmations: need(s.deletionConfirmations),
      minimumAgeMs: need(s.deletionMinimumAge),
      budgetObjects: need(s.deletionBudgetObjects),
      budgetFraction: need(s.deletionBudgetFraction),
      budgetWindowMs: need(s.deletionBudgetWindow),
    },
    drift: { managers: need(s.driftTolerateManagers), fields: need(s.driftTolerateFields) },
    isolation: {
      networkPolicy: need(s.isolationNetworkPolicy),
      runtimeClass: need(s.isolationRuntimeClass),
      registries: need(s.isolationRegistries),
    },
    ...optional("gateway", buildGateway(resolution)),
    observability: buildObservability(need),
  };
}

function buildGateway(resolution: Resolution): GatewayConfig | undefined {
  const s = settings;
  const [namespace, name] = [resolution.value(s.gatewayNamespace), resolution.value(s.gatewayName)];
  if (namespace === undefined || name === undefined) return undefined;
  const isCilium = resolution.value(s.gatewayProxies) === "cilium";
  return {
    namespace,
    name,
    ...optional("listener", resolution.value(s.gatewayListener)),
    proxies: isCilium ? "cilium" : { namespace: resolution.value(s.gatewayProxyNamespace) ?? namespace },
  };
}

export function buildVaultProgramConfig(resolution: Resolution): VaultProgramConfig {
  const need = <T>(setting: Setting<T>): T => present(resolution.value(setting), setting);
  const s = settings;
  return {
    instanceId: need(s.instanceId),
    region: resolution.value(s.region) ?? "",
    rpcPort: need(s.rpcPort),
    ...optional("listenHost", resolution.value(s.listenHost)),
    ...(resolution.isSet(s.tlsCertFile) && {
      tls: { certFile: need(s.tlsCertFile), keyFile: need(s.tlsKeyFile) },
    }),
    vault: present(buildVault(resolution), s.vaultMasterKeys),
    ...optional("token", resolution.secret(s.vaultToken)),
    observability: buildObservability(need),
  };
}

function buildObservability(need: <T>(setting: Setting<T>) => T): ObservabilityConfig {
  const s = settings;
  return {
    ...(need(s.tracingEnabled) && { tracing: { sampleRate: need(s.tracingSampleRate) } }),
    logging: {
      level: need(s.logLevel),
      sampleRate: need(s.logSampleRate),
      slowThresholdMs: need(s.logSlowThreshold),
    },
    metrics: { prometheusPort: need(s.prometheusPort) },
  };
}

/** If the platform is set, the region may contain dots. Otherwise the last dot separates region and platform. */
export function regionKey(label: string, platform: string | undefined): RegionKey {
  if (platform !== undefined) {
    const suffix = `.${platform}`;
    return { name: label.endsWith(suffix) ? label.slice(0, -suffix.length) : label, platform, label };
  }
  const dot = label.lastIndexOf(".");
  return dot < 0
    ? { name: label, platform: "", label }
    : { name: label.slice(0, dot), platform: label.slice(dot + 1), label };
}

function buildVault(resolution: Resolution): VaultConfig | undefined {
  const s = settings;
  const url = resolution.value(s.vaultUrl);
  if (url !== undefined) {
    return {
      kind: "remote",
      url,
      ...optional("token", resolution.secret(s.vaultToken)),
      ...optional("caFile", resolution.value(s.vaultCaFile)),
      allowInsecure: present(resolution.value(s.vaultAllowInsecure), s.vaultAllowInsecure),
    };
  }
  const masterKeys = resolution.secret(s.vaultMasterKeys);
  return (
    masterKeys && {
      kind: "embedded",
      masterKeys,
      storage: buildStorage(resolution),
      writeFormat: present(resolution.value(s.vaultWriteFormat), s.vaultWriteFormat),
    }
  );
}

function buildStorage(resolution: Resolution): VaultStorageConfig {
  const s = settings;
  const path = resolution.value(s.vaultFilePath);
  if (path !== undefined) return { kind: "file", path };
  return {
    kind: "s3",
    url: present(resolution.value(s.vaultS3Url), s.vaultS3Url),
    ...optional("region", resolution.value(s.vaultS3Region)),
    bucket: present(resolution.value(s.vaultS3Bucket), s.vaultS3Bucket),
    accessKeyId: present(resolution.value(s.vaultS3AccessKeyId), s.vaultS3AccessKeyId),
    accessKeySecret: present(resolution.secret(s.vaultS3AccessKeySecret), s.vaultS3AccessKeySecret),
  };
}

/** All settings with a value, in the order of the table. */
export function listOrigins(resolution: Resolution): SettingOrigin[] {
  return allSettings.flatMap((setting) => {
    const value = resolution.value(setting);
    if (value === undefined) return [];
    return {
      path: setting.path,
      shown: setting.kind.show(value),
      origin: resolution.originOf(setting) ?? { kind: "default" },
    };
  });
}

function present<T>(value: T | undefined, setting: Setting<unknown>): T {
  if (value === undefined) throw new Error(`${setting.path} has no value although the rules passed`);
  return value;
}

// An absent value is an absent property, so that `"vault" in config` and `config.vault` never disagree.
function optional<K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: V };
}
