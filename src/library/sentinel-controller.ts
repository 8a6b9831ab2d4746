// Keeps the sentinels of one region: apps/v1 Deployments with their Services, budgets and gossip policies.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ApplySentinelSchema, DeleteSentinelSchema } from "../gen/ctrl/v1/sentinel_pb.ts";
import { createSentinelController } from "../kinds/sentinel/controller.ts";
import { EmbeddedController, type OrderOutcome } from "./embedded-controller.ts";
import { type ControllerDeps, type EngineOptions, engineDeps, engineOptions } from "./engine-options.ts";
import { type RegistryLogin, registryCredentials } from "./registry-login.ts";

export interface SentinelControllerOptions extends EngineOptions {
  /** Sentinels are told where they run: "us-east-1.aws". */
  readonly region: string;
  /** Registries that images may come from. Default: all. */
  readonly registries?: readonly string[];
  /** The registry whose images are pulled with a login. */
  readonly registry?: RegistryLogin;
}

export type SentinelOrder = MessageInitShape<typeof ApplySentinelSchema>;
export type SentinelDeletion = MessageInitShape<typeof DeleteSentinelSchema>;

export class SentinelController extends EmbeddedController {
  readonly #controller;

  constructor(options: SentinelControllerOptions, deps: ControllerDeps) {
    const { region, registries = [], registry } = options;
    const controller = createSentinelController(
      {
        ...engineOptions(options),
        rules: { registries },
        settings: { region, ...(registry && { registry: registryCredentials(registry) }) },
      },
      engineDeps(deps),
    );
    super(controller);
    this.#controller = controller;
  }

  /** Does what the message says, on the road of the stream's messages; resolves with what came of it. */
  applySentinel(order: SentinelOrder, signal: AbortSignal): Promise<OrderOutcome> {
    return this.#controller.applySentinel(create(ApplySentinelSchema, order), signal);
  }

  /** Deletes all five objects at once, if they are krane's own. That there is no such sentinel is no error. */
  deleteSentinel(deletion: SentinelDeletion, signal: AbortSignal): Promise<OrderOutcome> {
    return this.#controller.deleteSentinel(create(DeleteSentinelSchema, deletion), signal);
  }
}
