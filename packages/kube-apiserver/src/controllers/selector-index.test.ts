import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { selectorMatches } from "../kinds/label-selectors.ts";
import { SelectorIndex } from "./disruption-controller.ts";

const labels = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2"), { maxKeys: 3 });
const operator = fc.constantFrom("Exists", "DoesNotExist");
const matchExpressions = fc.array(fc.record({ key: fc.constantFrom("a", "b"), operator }), { maxLength: 1 });
const selector = fc.record({ matchLabels: labels, matchExpressions });
const namespace = fc.constantFrom("one", "two");
const step = fc.record({
  key: fc.constantFrom("k1", "k2", "k3", "k4"),
  namespace,
  selector: fc.option(selector, { nil: undefined }),
});

describe("the selectors that may match an object", () => {
  it("include all that match, whatever was set and removed before", () => {
    fc.assert(
      fc.property(fc.array(step), labels, namespace, (steps, objectLabels, place) => {
        const index = new SelectorIndex();
        const current = new Map<string, (typeof steps)[number]>();
        for (const one of steps) {
          if (one.selector === undefined) index.remove(one.key);
          else index.set(one.key, one.selector, one.namespace);
          current.set(one.key, one);
        }
        const found = index.candidates({ metadata: { name: "x", namespace: place, labels: objectLabels } });
        assert.equal(new Set(found).size, found.length);
        for (const [key, one] of current) {
          const isPicked = one.namespace === place && selectorMatches(one.selector, objectLabels);
          if (isPicked) assert.ok(found.includes(key));
          if (one.namespace !== place || one.selector === undefined) assert.ok(!found.includes(key));
        }
      }),
    );
  });

  it("exclude those with a label that the object does not have", () => {
    const index = new SelectorIndex();
    for (let number = 0; number < 100; number++) {
      index.set(`k${number}`, { matchLabels: { shared: "yes", own: String(number) } }, "one");
    }
    const object = { metadata: { name: "x", namespace: "one", labels: { shared: "yes", own: "7" } } };
    // The first may lie at the label that all share; every other one lies at its own.
    assert.ok(index.candidates(object).length <= 2);
  });
});
