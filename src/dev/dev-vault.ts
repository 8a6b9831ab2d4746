// The vault of `krane dev`: its keys are in memory, and it is served on the control plane's port with a token of its own.
import type { ConnectRouter } from "@connectrpc/connect";
import type { AgentDeps } from "../agent/agent-deps.ts";
import { Secret } from "../config/secret.ts";
import { vaultServiceRoutes } from "../services/vault-service.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { createEmbeddedVault } from "../vault/embedded-vault.ts";
import { createMasterKeySource, generateMasterKey } from "../vault/master-keys.ts";
import { createMemoryStorage } from "../vault/storage/memory-storage.ts";
import type { OpenVault } from "../vault/vault.ts";

export interface DevVault {
  readonly vault: OpenVault;
  readonly token: Secret;
  readonly routes: (router: ConnectRouter) => void;
}

export interface DevVaultDeps extends Pick<AgentDeps, "clock" | "log" | "build"> {
  /** Generates unguessable text. */
  createToken(): string;
}

export function createDevVault({ clock, log, build, createToken }: DevVaultDeps): DevVault {
  const constant = (secret: Secret) => ({ current: async () => secret, refresh: () => undefined });
  const masterKeys = createMasterKeySource(constant(new Secret(generateMasterKey(clock.wallMs()))));
  const vault = createEmbeddedVault(
    { format: "krane" },
    { storage: createMemoryStorage(), masterKeys, clock },
  );
  const token = new Secret(createToken());
  const deps = { clock, log, metrics: createMetrics(build) };
  return { vault, token, routes: vaultServiceRoutes(vault, constant(token), deps) };
}
