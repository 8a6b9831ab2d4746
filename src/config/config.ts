// The configuration of an agent: every value checked, every default filled in, deeply frozen. Only parseConfig creates
// it, so code that gets a Config need not check it again.

import type { SecretRef } from "./secret.ts";

export interface Config {
  readonly instanceId: string;
  readonly region: RegionKey;
  readonly rpcPort: number;
  /** Absent: all addresses. */
  readonly listenHost?: string;
  /** An IP address. Absent: other agents cannot forward calls to this one. */
  readonly advertiseAddress?: string;
  readonly tls?: TlsConfig;
  readonly control: ControlConfig;
  readonly kubernetes: {
    readonly kubeconfig?: string;
    /** Where krane keeps its own objects, if it was set. */
    readonly namespace?: string;
  };
  readonly lease: "auto" | "required" | "off";
  readonly registry?: RegistryConfig;
  readonly vault?: VaultConfig;
  readonly secrets: SecretsConfig;
  /** Absent: the keys are in a Secret that krane creates. */
  readonly sealKeys?: SecretRef;
  /** Absent without a token: SchedulerService is off. */
  readonly scheduler?: { readonly token: SecretRef; readonly scrape: boolean };
  /** Absent without a token: AgentService is off. */
  readonly agent?: { readonly token: SecretRef };
  /** Whether people may read the logs of pods through the control plane. */
  readonly logs: { readonly enabled: boolean };
  readonly reconcile: { readonly workers: number };
  readonly deletion: DeletionConfig;
  /** What others may add to krane's objects. */
  readonly drift: { readonly managers: readonly string[]; readonly fields: readonly string[] };
  readonly isolation: IsolationConfig;
  /** Absent: nothing is reached by a hostname. */
  readonly gateway?: GatewayConfig;
  readonly observability: ObservabilityConfig;
}

export interface RegionKey {
  readonly name: string;
  /** Empty when neither the region nor the platform setting has one. */
  readonly platform: string;
  /** The region exactly as configured, for example "us-east-1.aws". */
  readonly label: string;
}

export interface TlsConfig {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface ControlConfig {
  /** Without a trailing slash. */
  readonly url: string;
  readonly token: SecretRef;
  readonly caFile?: string;
  readonly allowInsecure: boolean;
}

export interface RegistryConfig {
  /** Host, and port if one was given; never a scheme or path. */
  readonly url: string;
  readonly username: string;
  readonly password: SecretRef;
}

/**
 * The configuration of the `krane vault` commands: only the part that they need, so that a vault can run without a
 * control plane.
 */
export interface VaultProgramConfig {
  readonly instanceId: string;
  /** The region exactly as configured; empty if not set. */
  readonly region: string;
  readonly rpcPort: number;
  /** Absent: all addresses. */
  readonly listenHost?: string;
  readonly tls?: TlsConfig;
  readonly vault: VaultConfig;
  /** The token that callers of `krane vault serve` must send. */
  readonly token?: SecretRef;
  readonly observability: ObservabilityConfig;
}

export type VaultConfig = RemoteVaultConfig | EmbeddedVaultConfig;

export interface RemoteVaultConfig {
  readonly kind: "remote";
  readonly url: string;
  readonly token?: SecretRef;
  readonly caFile?: string;
  readonly allowInsecure: boolean;
}

export interface EmbeddedVaultConfig {
  readonly kind: "embedded";
  /** One key per line; the last one encrypts, all decrypt. */
  readonly masterKeys: SecretRef;
  readonly storage: VaultStorageConfig;
  readonly writeFormat: "krane" | "original";
}

export type VaultStorageConfig =
  | {
      readonly kind: "s3";
      readonly url: string;
      /** Absent: the region that the host of the URL names. */
      readonly region?: string;
      readonly bucket: string;
      readonly accessKeyId: string;
      readonly accessKeySecret: SecretRef;
    }
  | { readonly kind: "file"; readonly path: string };

export interface SecretsConfig {
  readonly audience: string;
  readonly endpoint?: string;
  readonly acceptDefaultAudience: boolean;
}

export interface DeletionConfig {
  readonly mode: "confirmed" | "explicit";
  readonly confirmations: number;
  readonly minimumAgeMs: number;
  readonly budgetObjects: number;
  readonly budgetFraction: number;
  readonly budgetWindowMs: number;
}

export interface IsolationConfig {
  readonly networkPolicy: "required" | "best-effort";
  /** Empty: deployments run without a sandbox. */
  readonly runtimeClass: "gvisor" | "";
  /** Registry hosts that images may come from; empty allows every registry. */
  readonly registries: readonly string[];
}

export interface GatewayConfig {
  readonly namespace: string;
  readonly name: string;
  /** Absent: all listeners. */
  readonly listener?: string;
  /** Where its requests come from. */
  readonly proxies: { readonly namespace: string } | "cilium";
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface ObservabilityConfig {
  /** Absent when OTLP is off. */
  readonly tracing?: { readonly sampleRate: number };
  readonly logging: {
    readonly level: LogLevel;
    readonly sampleRate: number;
    readonly slowThresholdMs: number;
  };
  /** Port 0 means no metrics server. */
  readonly metrics: { readonly prometheusPort: number };
}
