// How long to wait before a stream is opened again. Drawn at random from one second up to
// a cap, so that a fleet that lost its control plane does not come back as one wave; the
// cap grows while connections achieve nothing, so that a server which accepts and drops
// is not hammered for ever.
import { createBackoff } from "../concurrency/backoff.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { ControlPlaneCode } from "./error.ts";

const growing = { minMs: 1_000, initialMs: 5_000, maxMs: 60_000, jitter: "full" } as const;

// A connection that lasted this long worked, even if there was nothing to say.
const healthyAfterMs = 60_000;

// A refused token is not made good by asking often, and somebody has to be able to read the log.
const refusedMs = { min: 30_000, max: 60_000 };

/** How a connection ended. */
export interface EndedConnection {
  readonly broughtMessages: boolean;
  readonly livedMs: number;
  /** Absent when the server ended the stream in an orderly way. */
  readonly code?: ControlPlaneCode;
  readonly retryAfterMs?: number | undefined;
}

export interface ReconnectDelay {
  afterMs(ended: EndedConnection): number;
}

export function createReconnectDelay(random: Random): ReconnectDelay {
  const backoff = createBackoff(growing, random);
  return {
    afterMs(ended) {
      if (achievedSomething(ended)) backoff.reset();
      const drawnMs = backoff.nextMs();
      // The hint is a lower limit and not the wait itself: all agents get the same one.
      const hintedMs = ended.retryAfterMs === undefined ? 0 : ended.retryAfterMs + drawnMs - growing.minMs;
      const refused = ended.code === "unauthenticated" || ended.code === "permission_denied";
      const calmMs = refused ? uniform(random, refusedMs.min, refusedMs.max) : drawnMs;
      return Math.max(calmMs, hintedMs);
    },
  };
}

export function achievedSomething({ broughtMessages, livedMs }: EndedConnection): boolean {
  return broughtMessages || livedMs >= healthyAfterMs;
}
