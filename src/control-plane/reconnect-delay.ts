// The delay before a stream is reopened: random from one second up to a cap, so that many agents that lost their control
// plane do not come back in one wave.
//
// - The cap grows only while connections are refused or dropped before they achieve anything, so that a server in trouble
//   gets fewer attempts.
// - It does not grow while the control plane has never answered this process and cannot be reached at all: it is probably
//   still starting, as after a fresh install, and a refused connection costs it nothing.
import { createBackoff } from "../concurrency/backoff.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { ControlPlaneCode, Reach } from "./error.ts";

// Servers send nothing, not even headers, before their first message. A connection that has survived one round of pings
// counts as open, and as a success when it ends: many proxies end a stream that is silent for half a minute, which is no
// reason to wait longer and longer.
export const provenByPingsMs = 15_000;

/** A server that rejects a stream does so within a round trip. */
const acceptedMs = 1_000;

const growing = { minMs: 1_000, initialMs: 5_000, maxMs: 60_000, jitter: "full" } as const;

// Retrying often does not fix a rejected token, and would flood the log.
const refusedMs = { min: 30_000, max: 60_000 };

/** How a connection ended. */
export interface EndedConnection {
  readonly broughtMessages: boolean;
  readonly livedMs: number;
  /** Absent if the server ended the stream without an error. */
  readonly code?: ControlPlaneCode;
  readonly retryAfterMs?: number | undefined;
  /** How far the failed call came; absent if it is unknown. */
  readonly reach?: Reach;
}

export interface ReconnectDelay {
  afterMs(ended: EndedConnection): number;
}

export function createReconnectDelay(random: Random): ReconnectDelay {
  const backoff = createBackoff(growing, random);
  let hasAnswered = false;
  return {
    afterMs(ended) {
      hasAnswered ||= isAnswer(ended);
      const isStarting = !hasAnswered && ended.reach === "unreachable";
      if (isStarting || achievedSomething(ended) || wasSentAway(ended)) backoff.reset();
      const drawnMs = backoff.nextMs();
      // The hint is a lower limit, not the delay itself, because all agents get the same hint.
      const hintedMs = ended.retryAfterMs === undefined ? 0 : ended.retryAfterMs + drawnMs - growing.minMs;
      const refused = ended.code === "unauthenticated" || ended.code === "permission_denied";
      const delayMs = refused ? uniform(random, refusedMs.min, refusedMs.max) : drawnMs;
      return Math.max(delayMs, hintedMs);
    },
  };
}

/** Whether the connection was good enough to count as a success. */
export function achievedSomething({ broughtMessages, livedMs }: EndedConnection): boolean {
  return broughtMessages || livedMs >= provenByPingsMs;
}

/**
 * Whether the control plane took the stream, and ended it with a hint when to come back: it restarts, or makes room. A
 * replica after the other does so in a rolling restart, and each end says nothing about the next replica.
 */
function wasSentAway({ livedMs, retryAfterMs }: EndedConnection): boolean {
  return retryAfterMs !== undefined && livedMs >= acceptedMs;
}

function isAnswer(ended: EndedConnection): boolean {
  return ended.code === undefined || ended.reach === "answered" || achievedSomething(ended);
}
