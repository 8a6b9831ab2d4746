// A sample of the exhaustive plans, of which `make sim plans=all` runs each one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { plansOf, runStory } from "../../sim/plans.ts";
import { stories } from "../../sim/scenarios.ts";
import { loadKinds } from "../../sim/sim-agent.ts";

const kinds = await loadKinds();
const every = process.env["KRANE_TEST_LONG"] === "1" ? 1 : 150;

for (const story of Object.keys(stories))
  test(`no fault at a message of the story "${story}" violates an invariant`, async () => {
    const undisturbed = await runStory(kinds, story);
    assert.equal(undisturbed.violation, undefined);
    const plans = plansOf(story, undisturbed).filter((_, index) => index % every === 0);
    assert.ok(plans.length > 0, "the story has messages");
    for (const plan of plans) {
      const { violation, hit } = await runStory(kinds, story, plan);
      assert.equal(violation, undefined, `${story}:${plan.index}:${plan.fault}`);
      assert.notEqual(hit, undefined, "the fault hit its message");
    }
  });

test("a plan gives the same run every time", async () => {
  const plan = { index: 20, fault: "crash before" } as const;
  const [first, second] = [await runStory(kinds, "policy", plan), await runStory(kinds, "policy", plan)];
  assert.equal(second.hash, first.hash);
});
