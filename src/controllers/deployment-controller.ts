// The deployment controller: the engine with the deployments' table, and the way in for orders that do
// not come from the stream.
import type { ApplyDeployment, DeleteDeployment, DeploymentState } from "../gen/ctrl/v1/deployment_pb.ts";
import type { DeploymentSpec } from "../model/deployment/spec.ts";
import { Controller, type ControllerOptions, type OrderOutcome } from "./controller.ts";
import { type ConnectedDeps, type RunningController, runningController } from "./controller-face.ts";
import {
  createDeploymentDefinition,
  type DeploymentDefinition,
  type DeploymentDefinitionOptions,
  type SeenDeployment,
} from "./deployment-definition.ts";
import { environmentName } from "./deployment-kinds.ts";
import { readDelete } from "./deployment-messages.ts";
import { type DeploymentOrder, readDeploymentOrder } from "./deployment-orders.ts";
import { type DesiredDeployments, desiredDeployments } from "./desired-deployments.ts";
import { createMeteredKubeApi } from "./metered-kube-api.ts";
import { type SeenObjects, seenObjects } from "./seen-objects.ts";

export interface DeploymentControllerOptions extends ControllerOptions, DeploymentDefinitionOptions {}

export interface DeploymentController extends RunningController {
  applyDeployment(message: ApplyDeployment, signal: AbortSignal): Promise<OrderOutcome>;
  /** The same with a token of the caller's, which is kept on the ReplicaSet. */
  orderDeployment(order: DeploymentOrder, signal: AbortSignal): Promise<OrderOutcome>;
  deleteDeployment(message: DeleteDeployment, signal: AbortSignal): Promise<OrderOutcome>;
  /** What is there of all deployments and of one, and which of them look different from before. */
  readonly seen: SeenObjects<SeenDeployment>;
  /** What is wanted at this moment. */
  readonly desired: DesiredDeployments;
}

export function createDeploymentController(
  options: DeploymentControllerOptions,
  deps: ConnectedDeps,
): DeploymentController {
  const api = createMeteredKubeApi(deps.api, "deployments", deps);
  const { controlPlane, log } = deps;
  const controller = new Controller<DeploymentState, DeploymentSpec, DeploymentDefinition>(
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
  const order = (given: DeploymentOrder, signal: AbortSignal) => {
    const versionOf = (key: string) => controller.versionOf(key);
    return controller.order(readDeploymentOrder(given, versionOf, options.rules), signal);
  };
  return {
    ...runningController(controller),
    applyDeployment: (message, signal) => order({ message }, signal),
    orderDeployment: order,
    deleteDeployment: (message, signal) => controller.order(readDelete(message, 0n, options.rules), signal),
    seen: seenObjects(controller, (key) => controller.definition.seen(key)),
    desired: desiredDeployments(controller.store),
  };
}
