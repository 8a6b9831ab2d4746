// Opens a span for every reconcile when tracing is on.
import type { WorkOutcome } from "../concurrency/work-queue.ts";
import { spanCatalogue } from "../telemetry/span-catalogue.ts";
import type { Spans, Traced } from "../telemetry/spans.ts";
import { isTroubled } from "./object-status.ts";
import { type ReconcileDeps, Reconciler } from "./reconcile.ts";

/** Returns a reconciler that opens a span per reconcile, or the plain one when tracing is off. */
export function createReconciler<Spec>(deps: ReconcileDeps<Spec> & Traced): Reconciler<Spec> {
  const { spans } = deps;
  return spans === undefined ? new Reconciler(deps) : new TracedReconciler(deps, spans);
}

/** Opens a span for every reconcile; the spans of its requests are its children. */
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
      // An unchanged record belongs to an earlier reconcile.
      if (record === undefined || record === before) return work;
      span.set({ "krane.outcome": record.outcome });
      if (isTroubled(record.outcome)) span.fail(record.outcome);
      return work;
    });
  }
}
