// The table of all settings, in the order of docs/configuration.md.

import { bearerToken, masterKeys, password } from "./secret-types.ts";
import { type SecretSetting, type Setting, secretSetting, setting, settingWithDefault } from "./setting.ts";
import { bool, duration, integer, listOf, oneOf, path, patternText, port, rate } from "./setting-types.ts";
import { hostAddress, ipAddress, registryHost, url } from "./url-types.ts";

const secondMs = 1_000;
const hourMs = 3_600_000;

// Region and platform go into an HTTP header, log fields and metric attributes, so only characters that are safe in all
// three are allowed.
const word = "[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?";
const dottedWords = new RegExp(`^${word}(?:\\.${word})*$`);
const oneWord = new RegExp(`^${word}$`);
const namespaceText = patternText(
  "name",
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
  'at most 63 lower-case letters, digits and "-" between them',
);
const visible = patternText("text", /^[!-~]+$/, "visible ASCII characters without spaces");

/** Exported for code that shows what an agent without a configuration would do. */
export const defaultAudience = "krane";

export const settings = {
  instanceId: setting("instance_id", visible, "Name of this agent in logs and traces; unique per process.", {
    emptyIsUnset: true,
    fallback: {
      text: "`ins_` and 8 random characters",
      value: (facts) => `ins_${facts.randomId()}`,
    },
  }),
  region: setting(
    "region",
    patternText("name", dottedWords, 'letters, digits, "-", "_" and single dots between them'),
    "Region of this cluster. `us-east-1.aws` means region `us-east-1` on platform `aws`.",
    { required: true },
  ),
  platform: setting(
    "platform",
    patternText("name", oneWord, 'letters, digits, "-" and "_"'),
    "Platform of this cluster, if it is not the last part of `region`.",
  ),
  rpcPort: settingWithDefault("rpc_port", port(), 8070, "Port for RPCs and health checks."),
  listenHost: setting(
    "listen_host",
    hostAddress(),
    "Address that the RPC port and the metrics port listen on; all addresses if not set.",
  ),
  advertiseAddress: setting(
    "advertise_address",
    ipAddress(),
    "IP address at which the other agents of the region reach the RPC port of this one, to forward calls to it while it leads. The chart sets it to the address of the pod.",
    { emptyIsUnset: true },
  ),

  tlsCertFile: setting("tls.cert_file", path(), "Certificate chain (PEM) for the RPC port."),
  tlsKeyFile: setting("tls.key_file", path(), "Private key (PEM) for the RPC port."),

  controlUrl: setting("control.url", url(), "URL of the control plane.", {
    env: "UNKEY_CONTROL_PLANE_URL",
    required: true,
  }),
  controlToken: secretSetting("control.token", bearerToken(), "Bearer token for the control plane.", {
    env: "UNKEY_CONTROL_PLANE_BEARER",
    required: true,
  }),
  controlCaFile: setting(
    "control.ca_file",
    path(),
    "CA certificates (PEM) of the control plane, if it uses a private CA.",
  ),
  controlAllowInsecure: settingWithDefault(
    "control.allow_insecure",
    bool(),
    false,
    "Allow `http://` to a control plane on a public host.",
  ),

  kubeconfig: setting(
    "kubernetes.kubeconfig",
    path(),
    "Kubeconfig to use instead of the in-cluster credentials.",
  ),
  kubernetesNamespace: setting(
    "kubernetes.namespace",
    namespaceText,
    "Namespace where krane keeps its own objects, which tenants must not be able to write to. Default: the namespace of krane's pod, else `krane`.",
  ),

  lease: settingWithDefault(
    "lease",
    oneOf(["auto", "required", "off"]),
    "auto",
    "Whether an agent writes only while it holds the Lease of its region. `auto`: yes, unless Kubernetes forbids it to use Leases. `off`: this agent assumes that it is the only one of its region.",
  ),

  registryUrl: setting(
    "registry.url",
    registryHost(),
    "Registry that needs a login; krane creates the pull secrets for it.",
  ),
  registryUsername: setting("registry.username", visible, "User name for the registry."),
  registryPassword: secretSetting("registry.password", password(), "Password for the registry."),

  vaultUrl: setting("vault.url", url(), "URL of a remote vault; takes precedence over an embedded one.", {
    emptyIsUnset: true,
  }),
  vaultToken: secretSetting("vault.token", bearerToken(), "Bearer token for the vault.", {
    emptyIsUnset: true,
  }),
  vaultCaFile: setting(
    "vault.ca_file",
    path(),
    "CA certificates (PEM) of the vault, if it uses a private CA.",
  ),
  vaultAllowInsecure: settingWithDefault(
    "vault.allow_insecure",
    bool(),
    false,
    "Allow `http://` to a vault on a public host; for `krane vault serve`, allow listening on non-loopback addresses without TLS.",
  ),
  vaultMasterKeys: secretSetting(
    "vault.master_keys",
    masterKeys(),
    "Master keys of the embedded vault. The last one encrypts, all decrypt.",
  ),
  vaultWriteFormat: settingWithDefault(
    "vault.write_format",
    oneOf(["krane", "original"]),
    "krane",
    "Format of new ciphertext; `original` if an original vault has to read it too.",
  ),
  vaultS3Url: setting("vault.s3.url", url(), "S3 endpoint of the embedded vault's storage."),
  vaultS3Region: setting(
    "vault.s3.region",
    patternText("name", oneWord, 'letters, digits, "-" and "_"'),
    "Region that requests are signed for, if the host of the URL does not name it.",
  ),
  vaultS3Bucket: setting("vault.s3.bucket", visible, "Bucket for the data keys."),
  vaultS3AccessKeyId: setting("vault.s3.access_key_id", visible, "S3 access key id."),
  vaultS3AccessKeySecret: secretSetting("vault.s3.access_key_secret", password(), "S3 access key secret."),
  vaultFilePath: setting("vault.file.path", path(), "Folder of the embedded vault's storage on disk."),

  secretsAudience: settingWithDefault(
    "secrets.audience",
    visible,
    defaultAudience,
    "Audience that a workload's token must have.",
  ),
  secretsEndpoint: setting(
    "secrets.endpoint",
    url(),
    "Address of this agent's RPC port as workloads reach it.",
  ),
  secretsAcceptDefaultAudience: settingWithDefault(
    "secrets.accept_default_audience",
    bool(),
    false,
    "Also accept tokens without the audience, for injectors that cannot request it.",
  ),

  sealKeys: secretSetting(
    "seal.keys",
    masterKeys(),
    "Keys that seal what krane writes. The last one seals, all verify. Default: the Secret `krane-seal` in `kubernetes.namespace`, created at the first start.",
  ),

  schedulerToken: secretSetting(
    "scheduler.token",
    bearerToken(),
    "Bearer token that SchedulerService requires; without it the service is off.",
  ),
  schedulerScrape: settingWithDefault(
    "scheduler.scrape",
    bool(),
    false,
    "Allow ScrapeOpenApiSchema to reach running instances, and admit krane in their network policies.",
  ),
  agentToken: secretSetting(
    "agent.token",
    bearerToken(),
    "Bearer token that AgentService requires; without it the service is off.",
  ),

  logsEnabled: settingWithDefault(
    "logs.enabled",
    bool(),
    false,
    "Let people read the logs of krane's pods through the control plane (`krane logs`). The agent needs the right to get `pods/log`.",
  ),

  reconcileWorkers: settingWithDefault(
    "reconcile.workers",
    integer(1, 256),
    64,
    "Objects that one controller reconciles concurrently.",
  ),

  deletionMode: settingWithDefault(
    "deletion.mode",
    oneOf(["confirmed", "explicit"]),
    "confirmed",
    "`explicit` deletes only on an explicit order, never because the control plane does not know an object.",
  ),
  deletionConfirmations: settingWithDefault(
    "deletion.confirmations",
    integer(1, 100),
    3,
    "Consecutive passes that must find an object unknown before it may be deleted.",
  ),
  deletionMinimumAge: settingWithDefault(
    "deletion.minimum_age",
    duration(secondMs, 168 * hourMs),
    5 * 60 * secondMs,
    "Age that an unknown object must have before it may be deleted.",
  ),
  deletionBudgetObjects: settingWithDefault(
    "deletion.budget_objects",
    integer(0, 1_000_000),
    3,
    "Unknown objects that may be deleted per window; the larger of this and the fraction counts.",
  ),
  deletionBudgetFraction: settingWithDefault(
    "deletion.budget_fraction",
    rate(),
    0.2,
    "Share of the managed objects that may be deleted per window.",
  ),
  deletionBudgetWindow: settingWithDefault(
    "deletion.budget_window",
    duration(secondMs, 168 * hourMs),
    10 * 60 * secondMs,
    "Length of the rolling window of the deletion budget.",
  ),

  driftTolerateManagers: settingWithDefault(
    "drift.tolerate_managers",
    listOf(patternText("field manager", /^[\x20-\x7e]+$/, "printable ASCII characters")),
    [],
    "Field managers whose additions to krane's objects are left alone. Anybody can write under such a name, so it does not cover fields that lower isolation.",
  ),
  driftTolerateFields: settingWithDefault(
    "drift.tolerate_fields",
    listOf(patternText("field path", /^[\x21-\x7e]+$/, "printable ASCII characters without blanks")),
    [],
    "Fields of krane's objects that others may add, by the path that krane shows; `*` stands for any text.",
  ),

  isolationNetworkPolicy: settingWithDefault(
    "isolation.network_policy",
    oneOf(["required", "best-effort"]),
    "required",
    "`required` holds workloads back while the Cilium CRD is missing. With `best-effort` they run, and nothing isolates tenants on the network until it is there.",
  ),
  isolationRuntimeClass: settingWithDefault(
    "isolation.runtime_class",
    oneOf(["gvisor", ""]),
    "gvisor",
    "RuntimeClass of the pods of deployments. Empty: no sandbox, for trusted code only. Deployments that have the sandbox keep it until their pod template changes.",
  ),
  isolationRegistries: settingWithDefault(
    "isolation.registries",
    listOf(registryHost()),
    [],
    "Registries that images may come from; empty allows all.",
  ),

  gatewayNamespace: setting(
    "gateway.namespace",
    namespaceText,
    "Namespace of the Gateway that apps with `expose: gateway` are reached through. Without `[gateway]`, none is reached by a hostname.",
  ),
  gatewayName: setting(
    "gateway.name",
    patternText("name", /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, "the name of a Gateway"),
    "Name of that Gateway. Its listeners must admit HTTPRoutes of the namespaces of tenants.",
  ),
  gatewayListener: setting(
    "gateway.listener",
    patternText("name", /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/, "the name of a listener"),
    "The only listener of the Gateway to use; all if not set.",
  ),
  // Without a default, because the section as a whole is optional: a printed configuration would have a part of it.
  gatewayProxies: setting(
    "gateway.proxies",
    oneOf(["pods", "cilium"]),
    "Where the Gateway's requests come from, which network policies admit: all `pods` of `gateway.proxy_namespace`, or the proxy that is part of `cilium`. Default: `pods`.",
  ),
  gatewayProxyNamespace: setting(
    "gateway.proxy_namespace",
    namespaceText,
    "Namespace of the Gateway's proxies, and of nothing that tenants control. Default: `gateway.namespace`.",
  ),

  logLevel: settingWithDefault(
    "observability.logging.level",
    oneOf(["debug", "info", "warn", "error"]),
    "info",
    "Lowest level that is logged.",
    { env: "UNKEY_LOG_LEVEL" },
  ),
  logSampleRate: settingWithDefault(
    "observability.logging.sample_rate",
    rate(),
    1,
    "Share of ordinary requests, reconciles and reports that is logged; failed and slow ones always are.",
    { env: "UNKEY_LOG_SAMPLE_RATE" },
  ),
  logSlowThreshold: settingWithDefault(
    "observability.logging.slow_threshold",
    duration(1, hourMs),
    secondMs,
    "Duration above which a request, reconcile or report counts as slow and is always logged.",
    { env: "UNKEY_LOG_SLOW_THRESHOLD" },
  ),
  tracingEnabled: setting("observability.tracing.enabled", bool(), "Send traces and metrics over OTLP.", {
    env: "UNKEY_OTEL_ENABLED",
    fallback: {
      text: "`true` if the file has `[observability.tracing]`",
      value: (facts) => facts.hasSection("observability.tracing"),
    },
  }),
  tracingSampleRate: setting("observability.tracing.sample_rate", rate(), "Share of traces to keep.", {
    env: "UNKEY_OTEL_TRACE_SAMPLING_RATE",
    fallback: {
      text: "`0.25` if the file has `[observability.tracing]`, else `0.01`",
      value: (facts) => (facts.hasSection("observability.tracing") ? 0.25 : 0.01),
    },
  }),
  prometheusPort: settingWithDefault(
    "observability.metrics.prometheus_port",
    port(0),
    0,
    "Port for `/metrics`; 0 disables the metrics server.",
    { env: "UNKEY_PROMETHEUS_PORT" },
  ),
} as const;

export function isSecretSetting(entry: Setting<unknown>): entry is SecretSetting {
  return "file" in entry;
}

/** The settings to resolve: a secret and its `*_file` are one choice. */
export const settingChoices: readonly Setting<unknown>[] = Object.values(settings);

/** Every key that a file may contain, each secret followed by its `*_file`. */
export const allSettings: readonly Setting<unknown>[] = withFiles(settingChoices);

/** Every table that a file may contain, for example "observability" and "observability.tracing". */
export const allSections: readonly string[] = sectionsOf(allSettings);

export function withFiles(choices: readonly Setting<unknown>[]): readonly Setting<unknown>[] {
  return choices.flatMap((entry) => (isSecretSetting(entry) ? [entry, entry.file] : [entry]));
}

export function sectionsOf(all: readonly Setting<unknown>[]): readonly string[] {
  const prefixes = all.flatMap(({ path: key }) => {
    const parts = key.split(".");
    return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("."));
  });
  return [...new Set(prefixes)];
}
