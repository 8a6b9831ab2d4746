// For commands that follow a stream: whether its end is an outage, and what to do about a slow reader of the output.
import { Code, ConnectError } from "@connectrpc/connect";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import type { Output } from "../io.ts";

const backlogBytesMax = 1024 * 1024;
const lookAgainMs = 50;

/** Before a stream that ended is opened again. */
export const reconnectMs = 1_000;

/** Waits for a slow reader; returns false once the reader is gone, like `head`. */
export async function isTaken(stdout: Output, clock: Clock, signal: AbortSignal): Promise<boolean> {
  while (stdout.backlogBytes > backlogBytesMax) {
    if (stdout.backlogBytes === Number.POSITIVE_INFINITY) return false;
    await sleep(clock, lookAgainMs, signal);
  }
  return true;
}

/** Whether the call may succeed a little later. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof ConnectError)) return false;
  return [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Unknown, Code.Internal].includes(
    error.code,
  );
}
