// The deployment controller: the engine with the deployments' table, and the way in for orders that do
// not come from the stream.
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import type { ApplyDeployment, DeleteDeployment, DeploymentState } from "../gen/ctrl/v1/deployment_pb.ts";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { KubeApi } from "../kube/api.ts";
import type { DeploymentSpec } from "../model/deployment/spec.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { Controller, type ControllerOptions, type OrderOutcome } from "./controller.ts";
import { createDeploymentDefinition, type DeploymentDefinitionOptions } from "./deployment-definition.ts";
import { environmentName } from "./deployment-kinds.ts";
import { readApply, readDelete } from "./deployment-messages.ts";
import { createMeteredKubeApi } from "./metered-kube-api.ts";

export interface DeploymentControllerOptions extends ControllerOptions, DeploymentDefinitionOptions {}

export interface DeploymentControllerDeps {
  /** Its own: nothing of it is shared with another controller (K6). */
  readonly controlPlane: ControlPlane;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface DeploymentController {
  /** Resolves when the watches are open; rejects, with nothing left running, when they cannot be. */
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  applyDeployment(message: ApplyDeployment, signal: AbortSignal): Promise<OrderOutcome>;
  deleteDeployment(message: DeleteDeployment, signal: AbortSignal): Promise<OrderOutcome>;
  status(): ControllerStatus;
  objects(options?: { readonly onlyTroubled?: boolean }): ObjectStatus[];
  blockedDeletions(): BlockedDeletion[];
  /** False where no such deletion is blocked. */
  releaseDeletion(key: string): boolean;
}

export function createDeploymentController(
  options: DeploymentControllerOptions,
  deps: DeploymentControllerDeps,
): DeploymentController {
  const api = createMeteredKubeApi(deps.api, "deployments", deps);
  const { controlPlane, log } = deps;
  const controller = new Controller<DeploymentState, DeploymentSpec>(
    {
      groupOf: ({ want }) => (want.kind === "apply" ? environmentName(want.spec) : undefined),
      create: (store) =>
        createDeploymentDefinition(options, {
          ...deps,
          api,
          store,
          controlPlane,
          onError: (kind, error) =>
            log.warn("a watch failed and is opened again", { controller: "deployments", kind, error }),
        }),
    },
    options,
    { ...deps, api },
  );
  return {
    start: (signal) => controller.start(signal),
    stop: () => controller.stop(),
    applyDeployment: (message, signal) => controller.order(readApply(message, 0n, options.rules), signal),
    deleteDeployment: (message, signal) => controller.order(readDelete(message, 0n, options.rules), signal),
    status: () => controller.status(),
    objects: (filter) => controller.objects(filter),
    blockedDeletions: () => controller.blockedDeletions(),
    releaseDeletion: (key) => controller.releaseDeletion(key),
  };
}
