// Verifies the digests of every region against a scan of its rows, slowly. The database keeps them with every change, so
// a wrong one means a bug, or that somebody changed rows without the database's triggers. The scan wins. A region that
// cannot be verified does not keep the others from it.
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import { type Store, StoreError } from "./store.ts";

/** Between two regions, because a scan reads every row. */
const pauseMs = 1_000;
/** Then the database is down, and not one region in the way. */
const failuresMax = 3;

export interface DigestScanDeps {
  readonly store: Pick<Store, "regions" | "verifyDigests">;
  readonly clock: Clock;
  readonly log: Log;
  onWrong(count: number): void;
}

export async function scanDigests(deps: DigestScanDeps, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = deps;
  let failures = 0;
  for (const region of await store.regions()) {
    await sleep(clock, pauseMs, signal);
    const wrong = await store.verifyDigests(region).catch((error: unknown) => {
      failures += 1;
      if (!(error instanceof StoreError) || failures === failuresMax) throw error;
      log.warn("could not verify the digests of a region; retrying in the next scan", {
        reason: `region ${region}`,
        error,
      });
      return [];
    });
    if (wrong.length === 0) continue;
    deps.onWrong(wrong.length);
    log.error("the digests of a region did not match its rows; corrected them", {
      reason: `region ${region}: ${wrong.join(", ")}`,
      remedy: "find out who changed rows of krane.objects with triggers disabled",
    });
  }
}
