// The Cilium controller: the engine with the policies' table, and the way in for orders that do not come
// from the stream.
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import type {
  ApplyCiliumNetworkPolicy,
  CiliumNetworkPolicyState,
  DeleteCiliumNetworkPolicy,
} from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { KubeApi } from "../kube/api.ts";
import type { PolicySpec } from "../model/cilium/spec.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type CiliumDefinitionOptions, createCiliumDefinition } from "./cilium-definition.ts";
import { readApplyPolicy, readDeletePolicy } from "./cilium-messages.ts";
import { Controller, type ControllerOptions, type OrderOutcome } from "./controller.ts";
import { createMeteredKubeApi } from "./metered-kube-api.ts";

export interface CiliumControllerOptions extends ControllerOptions, CiliumDefinitionOptions {}

export interface CiliumControllerDeps {
  /** Its own: nothing of it is shared with another controller (K6). */
  readonly controlPlane: ControlPlane;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface CiliumController {
  /** Resolves also where the cluster has no such kind; then the status says so until it has. */
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  applyPolicy(message: ApplyCiliumNetworkPolicy, signal: AbortSignal): Promise<OrderOutcome>;
  deletePolicy(message: DeleteCiliumNetworkPolicy, signal: AbortSignal): Promise<OrderOutcome>;
  status(): ControllerStatus;
  objects(options?: { readonly onlyTroubled?: boolean }): ObjectStatus[];
  blockedDeletions(): BlockedDeletion[];
  /** False where no such deletion is blocked. */
  releaseDeletion(key: string): boolean;
}

export function createCiliumController(
  options: CiliumControllerOptions,
  deps: CiliumControllerDeps,
): CiliumController {
  const api = createMeteredKubeApi(deps.api, "cilium", deps);
  const { log } = deps;
  const controller = new Controller<CiliumNetworkPolicyState, PolicySpec>(
    {
      create: (store) =>
        createCiliumDefinition(options, {
          ...deps,
          api,
          store,
          onError: (kind, error) =>
            log.warn("a watch failed and is opened again", { controller: "cilium", kind, error }),
        }),
    },
    options,
    { ...deps, api },
  );
  return {
    start: (signal) => controller.start(signal),
    stop: () => controller.stop(),
    applyPolicy: (message, signal) => controller.order(readApplyPolicy(message, 0n, options.rules), signal),
    deletePolicy: (message, signal) => controller.order(readDeletePolicy(message, 0n, options.rules), signal),
    status: () => controller.status(),
    objects: (filter) => controller.objects(filter),
    blockedDeletions: () => controller.blockedDeletions(),
    releaseDeletion: (key) => controller.releaseDeletion(key),
  };
}
