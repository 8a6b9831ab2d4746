// What a controller's caches show about seals.
import type { Seal } from "../model/seal.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { StepsApplier } from "./apply-steps.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import { countAllSeals, type SealCounts, sealTotals } from "./seal-counts.ts";

export interface SealInspectorDeps {
  /** The controller's name. */
  readonly controller: string;
  readonly definition: Pick<ControllerDefinition<never>, "kinds">;
  readonly applier: Pick<StepsApplier, "checked">;
  readonly seal: Seal;
  readonly metrics: Pick<Metrics, "sealedObjects">;
}

export class SealInspector {
  private readonly deps: SealInspectorDeps;

  constructor(deps: SealInspectorDeps) {
    this.deps = deps;
  }

  counts(): readonly SealCounts[] {
    const { definition, applier, seal } = this.deps;
    return countAllSeals(definition.kinds, applier.checked(), seal.olderKeyIds);
  }

  measure(): void {
    const { controller, metrics } = this.deps;
    for (const [seal, count] of sealTotals(this.counts()))
      metrics.sealedObjects.set({ controller, seal }, count);
  }
}
