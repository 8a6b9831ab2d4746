// A span for every look at a key, in which the requests that it makes have theirs.
import type { WorkOutcome } from "../concurrency/work-queue.ts";
import type { Spans, Traced } from "../telemetry/no-tracing.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import { isTroubled } from "./object-status.ts";
import { type ReconcileDeps, Reconciler } from "./reconcile.ts";

/** The reconciler itself without tracing. */
export function createReconciler<Spec>(deps: ReconcileDeps<Spec> & Traced): Reconciler<Spec> {
  const { spans } = deps;
  return spans === undefined ? new Reconciler(deps) : new TracedReconciler(deps, spans);
}

class TracedReconciler<Spec> extends Reconciler<Spec> {
  private readonly spans: Spans;
  private readonly known: Pick<ReconcileDeps<Spec>, "controller" | "store" | "statuses">;

  constructor(deps: ReconcileDeps<Spec>, spans: Spans) {
    super(deps);
    this.spans = spans;
    this.known = deps;
  }

  override reconcile(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const { controller: name, store, statuses } = this.known;
    const attributes = {
      "krane.controller": name,
      "krane.key": key,
      "krane.version": store.get(key)?.version.toString(),
    };
    return this.spans.withSpan(spanCatalogue.reconcile, { subject: name, attributes }, async (span) => {
      const before = statuses.get(key);
      const work = await super.reconcile(key, signal);
      const record = statuses.get(key);
      // One that it has not written anew is about an earlier look.
      if (record === undefined || record === before) return work;
      span.set({ "krane.outcome": record.outcome });
      if (isTroubled(record.outcome)) span.fail(record.outcome);
      return work;
    });
  }
}
