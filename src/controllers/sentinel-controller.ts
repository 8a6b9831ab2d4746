// The sentinel controller: the engine with the sentinels' table, and the way in for orders that do not
// come from the stream.
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import type { ApplySentinel, DeleteSentinel, SentinelState } from "../gen/ctrl/v1/sentinel_pb.ts";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { KubeApi } from "../kube/api.ts";
import type { ObservedSentinel } from "../model/sentinel/observed.ts";
import type { SentinelSpec } from "../model/sentinel/spec.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { Controller, type ControllerOptions, type OrderOutcome } from "./controller.ts";
import { createMeteredKubeApi } from "./metered-kube-api.ts";
import { type SeenObjects, seenObjects } from "./seen-objects.ts";
import {
  createSentinelDefinition,
  type SentinelDefinition,
  type SentinelDefinitionOptions,
} from "./sentinel-definition.ts";
import { readDeleteSentinel } from "./sentinel-messages.ts";
import { readSentinelOrder } from "./sentinel-orders.ts";

export interface SentinelControllerOptions extends ControllerOptions, SentinelDefinitionOptions {}

export interface SentinelControllerDeps {
  /** Its own: nothing of it is shared with another controller (K6). */
  readonly controlPlane: ControlPlane;
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}

export interface SentinelController {
  /** Resolves when the watches are open; rejects, with nothing left running, when they cannot be. */
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  applySentinel(message: ApplySentinel, signal: AbortSignal): Promise<OrderOutcome>;
  deleteSentinel(message: DeleteSentinel, signal: AbortSignal): Promise<OrderOutcome>;
  status(): ControllerStatus;
  objects(options?: { readonly onlyTroubled?: boolean }): ObjectStatus[];
  blockedDeletions(): BlockedDeletion[];
  /** False where no such deletion is blocked. */
  releaseDeletion(key: string): boolean;
  /** What is there of all sentinels and of one, and which of them look different from before. */
  readonly seen: SeenObjects<ObservedSentinel>;
}

export function createSentinelController(
  options: SentinelControllerOptions,
  deps: SentinelControllerDeps,
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
    start: (signal) => controller.start(signal),
    stop: () => controller.stop(),
    applySentinel(message, signal) {
      const versionOf = (key: string) => controller.versionOf(key);
      return controller.order(readSentinelOrder(message, versionOf, options.rules), signal);
    },
    deleteSentinel: (message, signal) => controller.order(readDeleteSentinel(message, 0n), signal),
    status: () => controller.status(),
    objects: (filter) => controller.objects(filter),
    blockedDeletions: () => controller.blockedDeletions(),
    releaseDeletion: (key) => controller.releaseDeletion(key),
    seen: seenObjects(controller, (key) => controller.definition.seen(key)),
  };
}
