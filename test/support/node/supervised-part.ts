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
  /** One that ran for so long had started well. */
  readonly wellAfterMs: number;
  /** How often in a row it may end before that. A component that cannot start is left alone, and its log says why. */
  readonly restartsMax: number;
}

// A kubelet keeps ending for as long as containerd takes to find its containers after a crash: minutes, on a busy machine.
const likeSystemd: SupervisionOptions = { restartAfterMs: 2_000, wellAfterMs: 30_000, restartsMax: 300 };

/** Starts it at once. */
export function supervise(
  begin: () => Leashed,
  { restartAfterMs, wellAfterMs, restartsMax }: SupervisionOptions = likeSystemd,
): SupervisedPart {
  let running = begin();
  let shift = keepRunning();

  function keepRunning(): { isOver: boolean } {
    const own = { isOver: false };
    const watch = async () => {
      for (let restarts = 0; restarts < restartsMax; restarts += 1) {
        const begunMs = performance.now();
        await running.ended;
        if (performance.now() - begunMs >= wellAfterMs) restarts = 0;
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
