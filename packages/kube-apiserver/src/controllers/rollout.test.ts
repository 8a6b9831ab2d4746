import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { availableOf, type Limits, limitsOf, nextNewSize, nextOldSizes, sizeOf, sum } from "./rollout.ts";

const createSet = (replicas: number, available: number): ReplicaSet => ({
  spec: { replicas, selector: {} },
  status: { replicas, availableReplicas: available },
});

const setState = fc
  .tuple(fc.nat(6), fc.nat(6))
  .map(([replicas, available]) => createSet(replicas, Math.min(replicas, available)));

describe("a rolling update", () => {
  const limits = fc
    .record({ replicas: fc.nat(8), maxSurge: fc.nat(3), maxUnavailable: fc.nat(3) })
    .filter(
      ({ maxSurge, maxUnavailable, replicas }) => maxSurge + maxUnavailable > 0 && maxUnavailable <= replicas,
    );

  it("never exceeds maxSurge, and never goes below the minimum of available pods", () => {
    fc.assert(
      fc.property(limits, setState, fc.array(setState, { maxLength: 3 }), (bounds, newSet, old) => {
        const grown = nextNewSize(bounds, newSet, old);
        const total = grown + sum(old, sizeOf);
        const before = sizeOf(newSet) + sum(old, sizeOf);
        assert.ok(total <= Math.max(bounds.replicas + bounds.maxSurge, before));
        const sizes = nextOldSizes(bounds, newSet, old);
        const kept =
          availableOf(newSet) + sum(old, (set) => Math.min(sizes.get(set) ?? sizeOf(set), availableOf(set)));
        const had = sum([...old, newSet], availableOf);
        assert.ok(kept >= Math.min(had, bounds.replicas - bounds.maxUnavailable));
        for (const [set, size] of sizes) assert.ok(size >= 0 && size < sizeOf(set));
      }),
    );
  });

  it("finishes from any state when every pod becomes available", () => {
    fc.assert(
      fc.property(limits, setState, fc.array(setState, { maxLength: 3 }), (bounds, newSet, old) => {
        assert.deepEqual(settle(bounds, newSet, old), [bounds.replicas, 0]);
      }),
    );
  });

  it("rounds maxSurge up and maxUnavailable down, but never both to 0", () => {
    const spec = (maxSurge: string, maxUnavailable: string, replicas: number) =>
      limitsOf({
        spec: {
          replicas,
          selector: {},
          template: {},
          strategy: { rollingUpdate: { maxSurge, maxUnavailable } },
        },
      });
    assert.deepEqual(spec("25%", "25%", 3), { replicas: 3, maxSurge: 1, maxUnavailable: 0 });
    assert.deepEqual(spec("0%", "25%", 3), { replicas: 3, maxSurge: 0, maxUnavailable: 1 });
  });
});

function settle(bounds: Limits, newSet: ReplicaSet, old: readonly ReplicaSet[]): [number, number] {
  let current = newSet;
  let others = [...old];
  for (let round = 0; round < 100; round++) {
    const grown = nextNewSize(bounds, current, others);
    const sizes =
      grown === sizeOf(current) ? nextOldSizes(bounds, current, others) : new Map<ReplicaSet, number>();
    current = createSet(grown, grown);
    others = others.map((set) => {
      const size = sizes.get(set) ?? sizeOf(set);
      return createSet(size, size);
    });
  }
  return [sizeOf(current), sum(others, sizeOf)];
}
