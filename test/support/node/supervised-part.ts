// Runs a component of the node as systemd would: starts it again shortly after it ends. A kubelet, for one, exits when
// containerd does not answer yet.

import { setTimeout as delay } from "node:timers/promises";
import type { Leashed } from "../cluster/leash.ts";

export interface SupervisedPart {
  /** The running process, or the last one. */
  leashed(): Leashed;
  /** Resolves when it has ended. It stays so until `start`. */
  stop(): Promise<void>;
  start(): void;
}

export interface SupervisionOptions {
  readonly restartAfterMs: number;
  /** How often in a row it may end. A component that cannot start is left alone, and its log says why. */
  readonly restartsMax: number;
}

const likeSystemd: SupervisionOptions = { restartAfterMs: 500, restartsMax: 100 };

/** Starts it at once. */
export function supervise(
  begin: () => Leashed,
  { restartAfterMs, restartsMax }: SupervisionOptions = likeSystemd,
): SupervisedPart {
  let running = begin();
  let shift = keepRunning();

  function keepRunning(): { isOver: boolean } {
    const own = { isOver: false };
    const watch = async () => {
      for (let restarts = 0; restarts < restartsMax; restarts += 1) {
        await running.ended;
        await delay(restartAfterMs);
        if (own.isOver) return;
        running = begin();
      }
    };
    void watch();
    return own;
  }

  return {
    leashed: () => running,
    async stop() {
      shift.isOver = true;
      await running.release();
    },
    start() {
      if (!shift.isOver) return;
      running = begin();
      shift = keepRunning();
    },
  };
}
