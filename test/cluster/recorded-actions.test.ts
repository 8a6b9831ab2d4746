// What an agent with the chart's rights tells about its repairs and deletions, on a real API server: its Events, and the
// field managers that a real server records.

import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import type { Event } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import { createControlPlane } from "../../src/control-plane/connection.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { defaultOptions, deployment, region } from "../simulation/simulated-region.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";
import { createKeptLog } from "../support/kept-log.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { createTestPlane } from "../support/store-admin.ts";
import { testSeal } from "../support/test-seal.ts";

const createDeploymentController = await kinds.deployment.loadController();

const cluster = clusterUnderTest();
const clock = createSystemClock();
const token = new Secret("test-token");
let account: ServiceAccountAccess;

before(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
});

async function startAgent(t: TestContext, plane: ReturnType<typeof createTestPlane>) {
  const kept = createKeptLog();
  const credentials = fixedCredential({ authorization: `Bearer ${account.token}` });
  const endpoint = { server: cluster.serverUrl, ca: cluster.ca, credentials };
  const transport = createHttpTransport({ endpoint, connections: 16 }, { clock });
  const controlPlane = createControlPlane(
    {
      controller: "deployments",
      baseUrl: "http://in-memory",
      region: { name: "local", platform: "dev", label: region },
      token: { current: async () => token, refresh: () => undefined },
    },
    {
      clock,
      createLink: (interceptors) => ({
        transport: plane.createTransport(interceptors),
        generation: 1,
        close: async () => undefined,
      }),
    },
  );
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const api = createKubeApi(transport);
  const deps = {
    controlPlane,
    api,
    clock,
    random: createSystemRandom(),
    log: kept.log,
    metrics,
    seal: testSeal,
  };
  const deletion = { ...defaultOptions.deletion, minimumAgeMs: 0 };
  const controller = createDeploymentController({ ...defaultOptions, deletion, resyncMs: 1_000 }, deps);
  t.after(async () => {
    await controller.stop();
    await controlPlane.close();
    await transport.close();
  });
  await controller.start();
  return kept;
}

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
  const plane = createTestPlane({ tokens: [token] }, { clock, log: createQuietLog() });
  await plane.admin.registerRegion(region);
  for (const index of [1, 2, 3, 4])
    await plane.admin.setDeployment(region, deployment(index, { replicas: 1 }));
  const kept = await startAgent(t, plane);
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
