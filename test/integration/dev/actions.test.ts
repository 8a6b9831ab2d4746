// Every key of `krane dev`, pressed against a whole region without a screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { actions, runAction } from "../../../src/dev/actions.ts";
import type { DevRegion } from "../../../src/dev/dev-region.ts";
import { type DevObject, isSettled, loadDevState } from "../../../src/dev/dev-state.ts";
import type { KindName } from "../../../src/kinds/kinds.ts";
import { appsDeployments, ciliumNetworkPolicies, pods, replicaSets } from "../../../src/kube/resources.ts";
import { eventually } from "../../support/eventually.ts";
import { never, startedRegion } from "./dev-world.ts";

const namespace = "krane-dev";

async function press(region: DevRegion, key: string, id = "d_web-1"): Promise<string> {
  const action = actions.find((each) => each.key === key) ?? assert.fail(`no key ${key}`);
  return runAction(action, region, id, never);
}

async function objectOf(region: DevRegion, key: string): Promise<DevObject | undefined> {
  return (await loadDevState(region, never)).objects.find((object) => object.key === key);
}

async function becomes(region: DevRegion, key: string, part: Partial<DevObject>): Promise<DevObject> {
  return eventually(`${key} becomes ${JSON.stringify(Object.keys(part))}`, async () => {
    const object = (await objectOf(region, key)) ?? assert.fail(`${key} is not there`);
    for (const [name, value] of Object.entries(part))
      assert.deepEqual(object[name as keyof DevObject], value);
    return object;
  });
}

async function settled(region: DevRegion, kind: KindName, count: number): Promise<void> {
  await eventually(`${count} of kind ${kind} are ready`, async () => {
    const objects = (await loadDevState(region, never)).objects.filter((object) => object.kind === kind);
    assert.equal(objects.length, count);
    assert.ok(
      isSettled(objects),
      JSON.stringify(objects.map(({ key, pods, outcome }) => [key, pods, outcome])),
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
  await settled(region, "deployment", 3);

  await t.test("+ and - scale", async () => {
    await press(region, "+");
    await becomes(region, web, { pods: { ready: 3, total: 3 }, desiredVersion: 6n, appliedVersion: 6n });
    await press(region, "-");
    await becomes(region, web, { pods: { ready: 2, total: 2 }, appliedVersion: 7n });
  });

  await t.test("p kills a pod, and another one takes its place", async () => {
    const before = await webPods(region);
    assert.match(await press(region, "p"), new RegExp(`killed pod ${before[0]}`));
    await eventually("the killed pod has a successor", async () => {
      const after = await webPods(region);
      assert.equal(after.length, 2);
      assert.ok(!after.includes(before[0] ?? ""), "not yet");
    });
    await settled(region, "deployment", 3);
  });

  await t.test("e edits the ReplicaSet, and krane puts it right", async () => {
    assert.match(await press(region, "e"), /krane repaired it after \d+ ms/);
    const live = await region.cluster.api.get(replicaSets, { namespace, name: "web-1" }, {}, never);
    assert.equal(live?.spec?.replicas, 2);
    assert.equal(live?.metadata?.labels?.["unkey.com/project.id"], "proj_krane_dev");
  });

  await t.test("c crashes the image, which is reported as failing, and fixes it", async () => {
    await press(region, "c");
    await eventually("instances are reported as failing", async () => {
      assert.ok(((await objectOf(region, web))?.failing ?? 0) > 0, "not yet");
    });
    await press(region, "c");
    for (const pod of await webPods(region))
      await region.cluster.api.delete(pods, { namespace, name: pod }, { gracePeriodSeconds: 0 }, never);
    await becomes(region, web, { failing: 0, pods: { ready: 2, total: 2 } });
  });

  await t.test(
    "b requests an invalid spec: the reason names the field; pressing again fixes it",
    async () => {
      await press(region, "b");
      const { reason } = await becomes(region, web, { outcome: "parked" });
      assert.match(reason, /port must be from 1 to 65535, but is 99999/);
      assert.equal((await webPods(region)).length, 2);
      await press(region, "b");
      await becomes(region, web, { reason: "", pods: { ready: 2, total: 2 } });
    },
  );

  await t.test("s cuts the stream, and what is asked for afterwards arrives", async () => {
    await press(region, "s");
    await press(region, "+", "d_preview-1");
    await becomes(region, "krane-dev/preview-1", { pods: { ready: 2, total: 2 } });
    await eventually("the stream is open again", async () => {
      assert.equal((await loadDevState(region, never)).stream, "open");
    });
  });

  await t.test("n adds a new version with an id of its own, and d deletes the old one", async () => {
    assert.match(await press(region, "n"), /web-2 with .*:1\.26/);
    await becomes(region, "krane-dev/web-2", { id: "d_web-2", pods: { ready: 2, total: 2 } });
    await press(region, "d");
    await eventually("web-1 is gone", async () => assert.equal(await objectOf(region, web), undefined));
    assert.deepEqual(await webPods(region), []);
    await assert.rejects(press(region, "+"), /web-1 is being deleted/);
    await assert.rejects(press(region, "+", "d_unknown"), /select an object/);
  });
});

test("the keys do their work on a sentinel, too", async (t) => {
  const region = await startedRegion(t);
  const [gateway, id] = ["sentinel/gateway", "se_gateway"];
  await becomes(region, gateway, { kind: "sentinel", appliedVersion: 4n, pods: { ready: 0, total: 1 } });
  const { api } = region.cluster;
  const ref = { namespace: "sentinel", name: "gateway" };
  const sentinelPods = async () => (await api.list(pods, { namespace: "sentinel" }, never)).items;
  await eventually("its pod runs", async () =>
    assert.deepEqual(
      (await sentinelPods()).map(({ status }) => status?.phase),
      ["Running"],
    ),
  );

  assert.match(await press(region, "e", id), /krane repaired it after \d+ ms/);
  assert.equal((await api.get(appsDeployments, ref, {}, never))?.spec?.replicas, 1);

  const before = await eventually("what the edit brought is gone", async () => {
    const [first, ...more] = await sentinelPods();
    assert.equal(more.length, 0);
    return first;
  });
  assert.equal(await press(region, "p", id), `killed pod ${before?.metadata?.name}`);
  await eventually("the killed pod has a successor", async () => {
    const uids = (await sentinelPods()).map(({ metadata }) => metadata?.uid);
    assert.ok(uids.length === 1 && uids[0] !== before?.metadata?.uid, "not yet");
  });

  await press(region, "b", id);
  assert.match((await becomes(region, gateway, { outcome: "parked" })).reason, /cpu_millicores/);
  await press(region, "b", id);
  await becomes(region, gateway, { reason: "" });

  await press(region, "+", id);
  await becomes(region, gateway, { pods: { ready: 0, total: 2 } });
  await press(region, "n", id);
  await eventually("it is rolled over", async () => {
    const live = await api.get(appsDeployments, ref, {}, never);
    assert.equal(live?.spec?.template.spec?.containers[0]?.image, "registry.example/sentinel:2");
  });
  assert.match(await press(region, "c", id), /sentinel:2 now crashes, in one object/);

  await press(region, "d", id);
  await eventually("it is gone", async () => {
    assert.equal(await objectOf(region, gateway), undefined);
    assert.equal(await api.get(appsDeployments, ref, {}, never), undefined);
  });
});

test("the keys that make sense do their work on a policy, too", async (t) => {
  const region = await startedRegion(t);
  const [key, id] = ["krane-dev/to-web-1", "net_web-1"];
  await settled(region, "policy", 1);

  assert.match(await press(region, "e", id), /krane repaired it after \d+ ms/);
  await press(region, "b", id);
  assert.match((await becomes(region, key, { outcome: "parked" })).reason, /policy\.kind must be/);
  await press(region, "b", id);
  await settled(region, "policy", 1);
  for (const each of ["+", "-", "n", "p", "c"])
    await assert.rejects(press(region, each, id), /: not available for a policy$/);

  await press(region, "d", "d_web-1");
  await eventually("it goes with its deployment", async () => {
    assert.equal(await objectOf(region, key), undefined);
    const ref = { namespace, name: "to-web-1" };
    assert.equal(await region.cluster.api.get(ciliumNetworkPolicies, ref, {}, never), undefined);
  });
});

test("o opens the dashboard in a browser, and tells its URL where there is none", async (t) => {
  const opened: string[] = [];
  const empty = { contentType: "text/html", gzip: Buffer.alloc(0) };
  const openUrl = async (url: string) => opened.push(url) === 1;
  const region = await startedRegion(t, {}, { dashboard: { index: empty, assets: new Map() }, openUrl });
  const url = region.urls.dashboard ?? assert.fail("it has no dashboard");
  assert.match(await press(region, "o"), /^opened http.*; sign in with the token above$/);
  await assert.rejects(press(region, "o"), { message: `found no browser to start; open ${url}` });
  assert.deepEqual(opened, [url, url]);
});
