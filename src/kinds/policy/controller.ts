// The Cilium controller: the engine with the policies' table, and the way in for orders that do not come
// from the stream.

import { Controller, type ControllerOptions, type OrderOutcome } from "../../engine/controller.ts";
import { createMeteredKubeApi } from "../../engine/metered-kube-api.ts";
import {
  type ConnectedDeps,
  type RunningController,
  runningController,
} from "../../engine/running-controller.ts";
import type {
  ApplyCiliumNetworkPolicy,
  CiliumNetworkPolicyState,
  DeleteCiliumNetworkPolicy,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { type CiliumDefinitionOptions, createCiliumDefinition } from "./definition.ts";
import { readDeletePolicy } from "./messages.ts";
import { readPolicyOrder } from "./orders.ts";
import type { PolicySpec } from "./spec.ts";

export interface CiliumControllerOptions extends ControllerOptions, CiliumDefinitionOptions {}

export interface CiliumController extends RunningController {
  applyPolicy(message: ApplyCiliumNetworkPolicy, signal: AbortSignal): Promise<OrderOutcome>;
  deletePolicy(message: DeleteCiliumNetworkPolicy, signal: AbortSignal): Promise<OrderOutcome>;
}

export function createCiliumController(
  options: CiliumControllerOptions,
  deps: ConnectedDeps,
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
    ...runningController(controller),
    applyPolicy(message, signal) {
      const versionOf = (key: string) => controller.versionOf(key);
      return controller.order(readPolicyOrder(message, versionOf, options.rules), signal);
    },
    deletePolicy: (message, signal) => controller.order(readDeletePolicy(message, 0n, options.rules), signal),
  };
}
