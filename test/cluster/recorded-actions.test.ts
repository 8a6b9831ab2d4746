// What an agent with the chart's rights tells about its repairs and deletions, on a real API server: its Events, and the
// field managers that a real server records.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Event } from "kubernetes-types/core/v1.js";
import { defaultOptions, deployment, region } from "../simulation/simulated-region.ts";
import { createRegionPlane, startClusterController } from "../support/cluster-controller.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

async function eventsOf(reason: string, name: string): Promise<readonly Event[]> {
  const { items } = JSON.parse(await cluster.kubectl(["-n", "acme", "get", "events", "-o", "json"])) as {
    readonly items: readonly Event[];
  };
  return items.filter((event) => event.reason === reason && event.involvedObject.name === name);
}

async function messageOf(reason: string, name: string): Promise<string> {
  return eventually(`${reason} is recorded for ${name}`, async () => {
    const [event, ...more] = await eventsOf(reason, name);
    assert.deepEqual(more, []);
    assert.equal(event?.source?.component, "krane");
    return event?.message ?? "";
  });
}

test("repairs and deletions are Events and log lines, with the right manager and authority", async (t) => {
  const plane = await createRegionPlane();
  for (const index of [1, 2, 3, 4])
    await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const deletion = { ...defaultOptions.deletion, minimumAgeMs: 0 };
  const parts = { cluster, account, plane };
  const { kept } = await startClusterController(t, parts, { deletion, resyncMs: 1_000 });
  const replicaSets = async () =>
    (await cluster.kubectl(["-n", "acme", "get", "replicasets", "-o", "name"])).split("\n").filter(Boolean);
  await eventually("all are there", async () => assert.equal((await replicaSets()).length, 4));

  // A field that krane does not send, by a manager that has nothing to do with what follows.
  const note = ["annotate", "replicaset", "web-1", "note=x", "--field-manager=annotator"];
  await cluster.kubectl(["-n", "acme", ...note]);
  await cluster.kubectl(["-n", "acme", "scale", "replicaset", "web-1", "--replicas=3"]);
  // The server records no time for a change through this subresource.
  assert.match(
    await messageOf("Repaired", "web-1"),
    /^krane repaired this object: spec\.replicas: 3 -> 1, changed by field manager "kubectl" through subresource scale/,
  );
  const [scaled] = kept.of("repaired an object");
  assert.deepEqual(
    [scaled?.["field"], scaled?.["before"], scaled?.["after"], scaled?.["fieldManager"]],
    ["spec.replicas", "3", "1", "kubectl"],
  );

  const env = JSON.stringify([
    { op: "replace", path: "/spec/template/spec/containers/0/env/0/value", value: "canary-of-env" },
  ]);
  const edit = ["patch", "replicaset", "web-2", "--type=json", "-p", env, "--field-manager=editor"];
  await cluster.kubectl(["-n", "acme", ...edit]);
  assert.match(
    await messageOf("Repaired", "web-2"),
    /\.env\[name="[A-Z_]+"\]\.value: \[redacted\] -> \[redacted\], changed by field manager "editor" at 20/,
  );

  await cluster.kubectl(["-n", "acme", "delete", "replicaset", "web-3"]);
  await messageOf("Recreated", "web-3");

  await plane.admin.deleteDeployment(region, "d_3");
  assert.match(
    await messageOf("Deleted", "web-3"),
    /Authority: explicit delete \(the control plane ordered it with version \d+\)/,
  );
  await plane.admin.forgetDeployment(region, "d_4");
  assert.match(
    await messageOf("Deleted", "web-4"),
    /Authority: confirmed absence \(the control plane did not know it in \d+ resync passes in a row\)/,
  );
  assert.deepEqual(
    kept
      .of("deleted an object")
      .filter(({ kind }) => kind === "ReplicaSet")
      .map(({ name, authority }) => [name, authority]),
    [
      ["web-3", "explicit delete"],
      ["web-4", "confirmed absence"],
    ],
  );
  const texts = [
    JSON.stringify(kept.lines),
    await cluster.kubectl(["-n", "acme", "get", "events", "-o", "json"]),
  ];
  assert.ok(!texts.join().includes("canary-of-env"));
  // One repair each: a second one would mean that krane fights its own writes.
  assert.equal(kept.of("repaired an object").length, 2);
});
