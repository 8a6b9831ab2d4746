// Implements vault.v1.VaultService: a vault for other processes. All calls except `Liveness` need the bearer token.
//
// A caller only learns whether its request was wrong: not which check a ciphertext failed, and not the storage's error,
// which is logged instead.
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import type { Clock } from "../concurrency/clock.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { VaultService } from "../gen/vault/v1/service_pb.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Vault } from "../vault/vault.ts";
import { VaultError } from "../vault/vault-error.ts";
import { admitBearer } from "./bearer-auth.ts";
import { createAdmission } from "./call-admission.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { createRpcMetrics } from "./rpc-metrics.ts";

export interface VaultServiceDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "rpcServerRequests" | "rpcServerDuration">;
}

// Several times the size of one pod's environment.
const requestBytesMax = 8 * 1024 * 1024;

/** Registers the service with a router, behind its bearer token. */
export function vaultServiceRoutes(
  vault: Vault,
  token: SecretSource,
  deps: VaultServiceDeps,
): (router: ConnectRouter) => void {
  const explain = (error: unknown) => explainVaultError(error, deps.log);
  const options = {
    interceptors: [createRpcMetrics(deps), createErrorInterceptor({ ...deps, explain }), authOf(token)],
    readMaxBytes: requestBytesMax,
  };
  return (router) => void router.service(VaultService, createVaultService(vault), options);
}

function createVaultService(vault: Vault): ServiceImpl<typeof VaultService> {
  return {
    liveness: () => ({ status: "ok" }),
    encrypt: ({ keyring, data, context }, { signal }) => vault.encrypt({ keyring, data, context }, signal),
    async decrypt({ keyring, encrypted, context }, { signal }) {
      return { plaintext: await vault.decrypt({ keyring, encrypted, context }, signal) };
    },
    async encryptBulk({ keyring, items, bindItemNames }, { signal }) {
      const request = { keyring, items: new Map(Object.entries(items)), bindItemNames };
      return { items: Object.fromEntries(await vault.encryptBulk(request, signal)) };
    },
    async decryptBulk({ keyring, items }, { signal }) {
      const request = { keyring, items: new Map(Object.entries(items)) };
      return { items: Object.fromEntries(await vault.decryptBulk(request, signal)) };
    },
    reEncrypt: ({ keyring, encrypted, context }, { signal }) =>
      vault.reEncrypt({ keyring, encrypted, context }, signal),
  };
}

function authOf(token: SecretSource): Interceptor {
  const admit = admitBearer(token);
  return createAdmission((call) => (call.method === VaultService.method.liveness ? undefined : admit(call)));
}

function explainVaultError(error: unknown, log: Log): ConnectError | undefined {
  if (!(error instanceof VaultError)) return undefined;
  switch (error.code) {
    case "invalid":
    case "undecryptable":
      return new ConnectError(error.message, Code.InvalidArgument);
    case "unavailable":
      log.warn("the vault's storage failed", { error });
      return new ConnectError("the vault cannot reach its keys; try again later", Code.Unavailable);
    default:
      // The interceptor logs it and maps it to `internal`.
      return undefined;
  }
}
