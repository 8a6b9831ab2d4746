// The sentinel controller: the engine with the sentinels' table, and the way in for orders that do not
// come from the stream.

import { Controller, type ControllerOptions, type OrderOutcome } from "../../engine/controller.ts";
import { createMeteredKubeApi } from "../../engine/metered-kube-api.ts";
import {
  type ConnectedDeps,
  type RunningController,
  runningController,
} from "../../engine/running-controller.ts";
import { type SeenObjects, seenObjects } from "../../engine/seen-objects.ts";
import type { ApplySentinel, DeleteSentinel, SentinelState } from "../../gen/ctrl/v1/sentinel_pb.ts";
import {
  createSentinelDefinition,
  type SentinelDefinition,
  type SentinelDefinitionOptions,
} from "./definition.ts";
import { readDeleteSentinel } from "./messages.ts";
import type { ObservedSentinel } from "./observed.ts";
import { readSentinelOrder } from "./orders.ts";
import type { SentinelSpec } from "./spec.ts";

export interface SentinelControllerOptions extends ControllerOptions, SentinelDefinitionOptions {}

export interface SentinelController extends RunningController {
  applySentinel(message: ApplySentinel, signal: AbortSignal): Promise<OrderOutcome>;
  deleteSentinel(message: DeleteSentinel, signal: AbortSignal): Promise<OrderOutcome>;
  /** What is there of all sentinels and of one, and which of them look different from before. */
  readonly seen: SeenObjects<ObservedSentinel>;
}

export function createSentinelController(
  options: SentinelControllerOptions,
  deps: ConnectedDeps,
): SentinelController {
  const api = createMeteredKubeApi(deps.api, "sentinels", deps);
  const { controlPlane, log } = deps;
  const controller = new Controller<SentinelState, SentinelSpec, SentinelDefinition>(
    {
      create: (store) =>
        createSentinelDefinition(options, {
          ...deps,
          api,
          store,
          controlPlane,
          onError: (kind, error) =>
            log.warn("a watch failed and is opened again", { controller: "sentinels", kind, error }),
        }),
    },
    options,
    { ...deps, api },
  );
  return {
    ...runningController(controller),
    applySentinel(message, signal) {
      const versionOf = (key: string) => controller.versionOf(key);
      return controller.order(readSentinelOrder(message, versionOf, options.rules), signal);
    },
    deleteSentinel: (message, signal) => controller.order(readDeleteSentinel(message, 0n), signal),
    seen: seenObjects(controller, (key) => controller.definition.seen(key)),
  };
}
