// Verifies the digests of every region against a scan of its rows, slowly. The database keeps them with every change, so
// a wrong one means a bug, or that somebody changed rows without the database's triggers. The scan wins.
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import type { Store } from "./store.ts";

/** Between two regions, because a scan reads every row. */
const pauseMs = 1_000;

export interface DigestScanDeps {
  readonly store: Pick<Store, "regions" | "verifyDigests">;
  readonly clock: Clock;
  readonly log: Log;
  onWrong(count: number): void;
}

export async function scanDigests(deps: DigestScanDeps, signal: AbortSignal): Promise<void> {
  const { store, clock, log } = deps;
  for (const region of await store.regions()) {
    await sleep(clock, pauseMs, signal);
    const wrong = await store.verifyDigests(region);
    if (wrong.length === 0) continue;
    deps.onWrong(wrong.length);
    log.error("the digests of a region did not match its rows; corrected them", {
      reason: `region ${region}: ${wrong.join(", ")}`,
      remedy: "find out who changed rows of krane.objects with triggers disabled",
    });
  }
}
