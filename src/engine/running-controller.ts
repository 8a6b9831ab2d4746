// What the three controllers have in common for whoever starts them and looks at them.
import type { ControlPlane } from "../control-plane/connection.ts";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { ControllerDeps } from "./controller.ts";
import type { ObjectFilter } from "./controller-status.ts";

/** All of it its own: nothing is shared with another controller (K6). */
export interface ConnectedDeps extends ControllerDeps {
  readonly controlPlane: ControlPlane;
}

export interface RunningController {
  /**
   * Resolves when the watches are open; rejects, with nothing left running, when they cannot be. A kind that
   * the cluster does not have is no reason: the status says so until it has.
   */
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  status(): ControllerStatus;
  objects(filter?: ObjectFilter): ObjectStatus[];
  blockedDeletions(): BlockedDeletion[];
  /** False where no such deletion is blocked. */
  releaseDeletion(key: string): boolean;
}

/** Only these of the engine's doors; the others belong to the kinds. */
export function runningController(controller: RunningController): RunningController {
  return {
    start: (signal) => controller.start(signal),
    stop: () => controller.stop(),
    status: () => controller.status(),
    objects: (filter) => controller.objects(filter),
    blockedDeletions: () => controller.blockedDeletions(),
    releaseDeletion: (key) => controller.releaseDeletion(key),
  };
}
