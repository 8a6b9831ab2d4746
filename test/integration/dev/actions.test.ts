// Every key of `krane dev`, pressed against a whole region without a screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { actions, runAction } from "../../../src/dev/actions.ts";
import type { DevRegion } from "../../../src/dev/dev-region.ts";
import { type DevObject, isSettled, loadDevState } from "../../../src/dev/dev-state.ts";
import { pods, replicaSets } from "../../../src/kube/kinds.ts";
import { eventually } from "../../support/eventually.ts";
import { never, startedRegion } from "./dev-world.ts";

const namespace = "krane-dev";

async function press(region: DevRegion, key: string, deploymentId = "d_web-1"): Promise<string> {
  const action = actions.find((each) => each.key === key) ?? assert.fail(`no key ${key}`);
  return runAction(action, region, deploymentId, never);
}

async function objectOf(region: DevRegion, key: string): Promise<DevObject | undefined> {
  return (await loadDevState(region, never)).objects.find((object) => object.key === key);
}

async function becomes(region: DevRegion, key: string, part: Partial<DevObject>): Promise<DevObject> {
  return eventually(`${key} becomes ${JSON.stringify(Object.values(part).map(String))}`, async () => {
    const object = (await objectOf(region, key)) ?? assert.fail(`${key} is not there`);
    for (const [name, value] of Object.entries(part)) assert.equal(object[name as keyof DevObject], value);
    return object;
  });
}

async function settled(region: DevRegion, count: number): Promise<void> {
  await eventually(`${count} deployments are ready`, async () => {
    const state = await loadDevState(region, never);
    assert.equal(state.objects.length, count);
    assert.ok(
      isSettled(state),
      JSON.stringify(state.objects.map(({ key, ready, outcome }) => [key, ready, outcome])),
    );
  });
}

async function webPods(region: DevRegion): Promise<readonly string[]> {
  const labelSelector = "unkey.com/deployment.id=d_web-1";
  const { items } = await region.cluster.api.list(pods, { namespace, labelSelector }, never);
  return items.map(({ metadata }) => metadata?.name ?? "").sort();
}

test("the sample becomes ready, and every key does what its title says", async (t) => {
  const region = await startedRegion(t);
  const web = "krane-dev/web-1";
  await settled(region, 3);

  await t.test("+ and - scale", async () => {
    await press(region, "+");
    await becomes(region, web, { ready: 3, total: 3, desiredVersion: 4n, appliedVersion: 4n });
    await press(region, "-");
    await becomes(region, web, { ready: 2, total: 2, appliedVersion: 5n });
  });

  await t.test("p kills a pod, and another one takes its place", async () => {
    const before = await webPods(region);
    assert.match(await press(region, "p"), new RegExp(`killed pod ${before[0]}`));
    await eventually("the killed pod has a successor", async () => {
      const after = await webPods(region);
      assert.equal(after.length, 2);
      assert.ok(!after.includes(before[0] ?? ""));
    });
    await settled(region, 3);
  });

  await t.test("e edits the ReplicaSet, and krane puts it right", async () => {
    assert.match(await press(region, "e"), /krane put it right after \d+ ms/);
    const live = await region.cluster.api.get(replicaSets, { namespace, name: "web-1" }, {}, never);
    assert.equal(live?.spec?.replicas, 2);
    assert.equal(live?.metadata?.labels?.["unkey.com/project.id"], "proj_krane_dev");
  });

  await t.test("c crashes the image, which is reported as failing, and mends it", async () => {
    await press(region, "c");
    await eventually("instances are reported as failing", async () => {
      assert.ok(((await objectOf(region, web))?.failing ?? 0) > 0);
    });
    await press(region, "c");
    for (const pod of await webPods(region))
      await region.cluster.api.delete(pods, { namespace, name: pod }, { gracePeriodSeconds: 0 }, never);
    await becomes(region, web, { failing: 0, ready: 2 });
  });

  await t.test("b asks for nonsense: the reason names the field; again mends it", async () => {
    await press(region, "b");
    const { reason } = await becomes(region, web, { outcome: "parked" });
    assert.match(reason, /port must be from 1 to 65535, but is 99999/);
    assert.equal((await webPods(region)).length, 2);
    await press(region, "b");
    await becomes(region, web, { reason: "", ready: 2 });
  });

  await t.test("s cuts the stream, and what is asked for afterwards arrives", async () => {
    await press(region, "s");
    await press(region, "+", "d_preview-1");
    await becomes(region, "krane-dev/preview-1", { ready: 2, total: 2 });
    await eventually("the stream is open again", async () => {
      assert.equal((await loadDevState(region, never)).stream, "open");
    });
  });

  await t.test("n adds a new version with an id of its own, and d deletes the old one", async () => {
    assert.match(await press(region, "n"), /web-2 with .*:1\.26/);
    await becomes(region, "krane-dev/web-2", { id: "d_web-2", ready: 2 });
    await press(region, "d");
    await eventually("web-1 is gone", async () => assert.equal(await objectOf(region, web), undefined));
    assert.deepEqual(await webPods(region), []);
    await assert.rejects(press(region, "+"), /web-1 is being deleted/);
    await assert.rejects(press(region, "+", "d_unknown"), /choose a deployment/);
  });
});
