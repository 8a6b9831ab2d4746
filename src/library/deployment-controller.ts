// Keeps the deployments of one region: ReplicaSets, their pull secrets and the ingress policies of their
// environments.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { IsolationConfig } from "../config/config.ts";
import { settings } from "../config/settings.ts";
import { ApplyDeploymentSchema, DeleteDeploymentSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { createDeploymentController } from "../kinds/deployment/controller.ts";
import { EmbeddedController, type OrderOutcome } from "./embedded-controller.ts";
import {
  type ControllerDeps,
  defaultOf,
  type EngineOptions,
  engineDeps,
  engineOptions,
} from "./engine-options.ts";
import { type RegistryLogin, registryCredentials } from "./registry-login.ts";

export interface DeploymentControllerOptions extends EngineOptions {
  /** "required" (the default) holds workloads back while the cluster has no CiliumNetworkPolicy. */
  readonly networkPolicy?: IsolationConfig["networkPolicy"];
  /** Registries that images may come from. Default: all. */
  readonly registries?: readonly string[];
  /** The registry whose images are pulled with a login. */
  readonly registry?: RegistryLogin;
  /** For workloads with encrypted variables: the audience of their tokens, and where they find krane. */
  readonly secrets?: { readonly audience?: string; readonly endpoint?: string };
  /** The namespace that this program runs in, which no deployment may be in. */
  readonly ownNamespace?: string;
}

export type DeploymentOrder = MessageInitShape<typeof ApplyDeploymentSchema>;
export type DeploymentDeletion = MessageInitShape<typeof DeleteDeploymentSchema>;

export class DeploymentController extends EmbeddedController {
  readonly #controller;

  constructor(options: DeploymentControllerOptions, deps: ControllerDeps) {
    const { registries = [], networkPolicy = defaultOf(settings.isolationNetworkPolicy) } = options;
    const { ownNamespace, secrets, registry } = options;
    const controller = createDeploymentController(
      {
        ...engineOptions(options),
        networkPolicy,
        rules: { registries, ...(ownNamespace !== undefined && { ownNamespace }) },
        settings: {
          secrets: { audience: defaultOf(settings.secretsAudience), ...secrets },
          ...(registry && { registry: registryCredentials(registry) }),
        },
      },
      engineDeps(deps),
    );
    super(controller);
    this.#controller = controller;
  }

  /** Does what the message says, on the road of the stream's messages; resolves with what came of it. */
  applyDeployment(order: DeploymentOrder, signal: AbortSignal): Promise<OrderOutcome> {
    return this.#controller.applyDeployment(create(ApplyDeploymentSchema, order), signal);
  }

  /** Deletes at once, if it is krane's own. That there is no such deployment is no error. */
  deleteDeployment(deletion: DeploymentDeletion, signal: AbortSignal): Promise<OrderOutcome> {
    return this.#controller.deleteDeployment(create(DeleteDeploymentSchema, deletion), signal);
  }
}
