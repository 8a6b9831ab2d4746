// Keeps the network policies that the control plane wants in one region.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ApplyCiliumNetworkPolicySchema,
  DeleteCiliumNetworkPolicySchema,
} from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { createCiliumController } from "../kinds/policy/controller.ts";
import { EmbeddedController, type OrderOutcome } from "./embedded-controller.ts";
import { type ControllerDeps, type EngineOptions, engineDeps, engineOptions } from "./engine-options.ts";

export interface CiliumControllerOptions extends EngineOptions {
  /** The namespace that this program runs in, which no policy may be in. */
  readonly ownNamespace?: string;
}

export type PolicyOrder = MessageInitShape<typeof ApplyCiliumNetworkPolicySchema>;
export type PolicyDeletion = MessageInitShape<typeof DeleteCiliumNetworkPolicySchema>;

export class CiliumController extends EmbeddedController {
  readonly #controller;

  constructor(options: CiliumControllerOptions, deps: ControllerDeps) {
    const { ownNamespace } = options;
    const rules = ownNamespace === undefined ? {} : { ownNamespace };
    const controller = createCiliumController({ ...engineOptions(options), rules }, engineDeps(deps));
    super(controller);
    this.#controller = controller;
  }

  /** Does what the message says, on the road of the stream's messages; resolves with what came of it. */
  applyPolicy(order: PolicyOrder, signal: AbortSignal): Promise<OrderOutcome> {
    return this.#controller.applyPolicy(create(ApplyCiliumNetworkPolicySchema, order), signal);
  }

  /** Deletes at once, if it is krane's own. That there is no such policy is no error. */
  deletePolicy(deletion: PolicyDeletion, signal: AbortSignal): Promise<OrderOutcome> {
    return this.#controller.deletePolicy(create(DeleteCiliumNetworkPolicySchema, deletion), signal);
  }
}
