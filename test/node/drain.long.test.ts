// A node is drained: the budget of a sentinel keeps one of its pods in service, and krane reports what is left of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { eventually } from "../support/eventually.ts";
import { nodeName } from "../support/node/box.ts";
import { sentinelImage } from "../support/node/images.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { askFromPod, patience, startProbe } from "../support/node/tenants.ts";

let krane: InstalledKrane;
const namespace = "sentinel";
const healthUrl = `http://gate.${namespace}.svc.cluster.local:8040/_unkey/internal/health`;
const selector = "unkey.com/sentinel.id=s_gate";

const documents = [
  {
    apiVersion: "krane/v1",
    kind: "Environment",
    id: "env_gate",
    workspace: "ws_gate",
    project: "proj_gate",
  },
  {
    apiVersion: "krane/v1",
    kind: "Sentinel",
    id: "s_gate",
    name: "gate",
    workspace: "ws_gate",
    project: "proj_gate",
    environment: "env_gate",
    image: sentinelImage,
    replicas: 2,
    cpu: "500m",
    memory: "256Mi",
  },
];

async function sentinelPods(): Promise<readonly Pod[]> {
  const listed = await krane.cluster.kubectl(["-n", namespace, "get", "pods", "-l", selector, "-o", "json"]);
  return (JSON.parse(listed) as { readonly items: readonly Pod[] }).items;
}

async function readyPods(): Promise<readonly Pod[]> {
  return (await sentinelPods()).filter(({ status }) =>
    status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True"),
  );
}

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
    // A sentinel does not start without the Secret of its database, which the platform provides.
    const secret = {
      apiVersion: "v1",
      kind: "List",
      items: [
        { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: "database", namespace },
          stringData: { UNKEY_DATABASE_PRIMARY: "none" },
        },
      ],
    };
    await krane.cluster.kubectl(["apply", "--server-side", "-f", "-"], { input: JSON.stringify(secret) });
    const text = documents.map((document) => JSON.stringify(document)).join("\n---\n");
    await krane.type(`krane apply --wait --timeout 180s -f - <<'END'\n${text}\nEND`);
  },
  { timeout: 600_000 },
);

after(async () => {
  await krane.cluster.kubectl(["uncordon", nodeName]);
  await krane.type("krane delete sentinel s_gate --yes --wait --timeout 180s");
  await eventually(
    "no pod of the sentinel is left",
    async () => assert.deepEqual(await sentinelPods(), []),
    patience,
  );
});

interface ShownSentinel {
  readonly cause: string;
}

const causeOf = async () => (JSON.parse(await krane.type("krane why s_gate -o json")) as ShownSentinel).cause;

test("a sentinel runs beside tenants' programs, outside their sandbox, and its Service answers", async () => {
  const pods = await readyPods();
  assert.equal(pods.length, 2);
  for (const { spec } of pods) assert.equal(spec?.runtimeClassName, undefined);
  assert.equal(await askFromPod(krane, healthUrl), "healthy");
});

test("a drain takes one pod of a sentinel, and is refused the other until there is another node", async () => {
  const before = (await readyPods()).map(({ metadata }) => metadata?.name);
  // krane's own pods are on the same node, and would have to leave too.
  const drain = ["drain", nodeName, "--pod-selector", selector, "--timeout=20s"];
  await assert.rejects(krane.cluster.kubectl(drain), /violate the pod's disruption budget/);
  const left = (await readyPods()).map(({ metadata }) => metadata?.name);
  assert.equal(left.length, 1);
  assert.ok(before.includes(left[0]), "it is one of those from before the drain");
  assert.equal(await askFromPod(krane, healthUrl), "healthy");
  await eventually(
    "krane reports the pod that is left",
    async () => {
      const { sentinel } = JSON.parse(await krane.type("krane get sentinel s_gate -o json")) as {
        readonly sentinel: { readonly availableReplicas: number; readonly health: string };
      };
      const { availableReplicas, health } = sentinel;
      assert.deepEqual({ availableReplicas, health }, { availableReplicas: 1, health: "HEALTH_HEALTHY" });
    },
    patience,
  );
});

test("with the node back, the sentinel has all its pods again, and the one that stayed was not restarted", async () => {
  const [stayed] = await readyPods();
  await krane.cluster.kubectl(["uncordon", nodeName]);
  await eventually(
    "both pods are Ready, and krane says that all is well",
    async () => {
      assert.equal((await readyPods()).length, 2);
      assert.equal(await causeOf(), "all-well");
    },
    patience,
  );
  const uids = (await readyPods()).map(({ metadata }) => metadata?.uid);
  assert.ok(uids.includes(stayed?.metadata?.uid), "the one that stayed is still there");
});
