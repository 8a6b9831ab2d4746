import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type applySentinel, sentinelSpec } from "../../../test/support/sentinel-messages.ts";
import { ApplySentinelSchema } from "../../gen/ctrl/v1/sentinel_pb.ts";
import type { KubeObject } from "../../kube/types.ts";
import { annotationKeys, labelKeys } from "../../model/labels.ts";
import { isDns1035Label, isLabelValue } from "../../model/names.ts";
import {
  type DesiredSentinelObject,
  desiredSentinel,
  type SentinelSettings,
  sentinelPartsToDelete,
} from "./desired.ts";
import { sentinelSelection } from "./identity.ts";

type Overrides = Parameters<typeof applySentinel>[0];

const settings: SentinelSettings = {
  region: "us-east-1.aws",
  registry: { host: "registry.example", username: "robot", password: { reveal: () => "secret" } },
};

// Another valid value for each field.
const changes: Readonly<Record<string, Overrides>> = {
  k8s_name: { k8sName: "other" },
  workspace_id: { workspaceId: "ws_other" },
  project_id: { projectId: "proj_other" },
  environment_id: { environmentId: "env_other" },
  sentinel_id: { sentinelId: "se_other" },
  image: { image: "registry.example/platform/sentinel:2" },
  replicas: { replicas: 3 },
  cpu_millicores: { cpuMillicores: 251n },
  memory_mib: { memoryMib: 257n },
};

function objects(overrides: Overrides = {}, using = settings, uid = "uid-1") {
  return desiredSentinel(sentinelSpec(overrides), using, uid);
}

function manifestOf<K extends DesiredSentinelObject["kind"]>(kind: K, overrides: Overrides = {}) {
  const found = objects(overrides).find(
    (object): object is Extract<DesiredSentinelObject, { kind: K }> => object.kind === kind,
  );
  assert.ok(found);
  return found.manifest as Extract<DesiredSentinelObject, { kind: K }>["manifest"];
}

function hashesOf(desired: readonly DesiredSentinelObject[]): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    desired.map(({ kind, manifest }) => [
      kind,
      manifest.metadata?.annotations?.[annotationKeys.manifestHash],
    ]),
  );
}

test("the table of changes has every field of the message", () => {
  assert.deepEqual(Object.keys(changes).sort(), ApplySentinelSchema.fields.map(({ name }) => name).sort());
});

for (const [field, change] of Object.entries(changes)) {
  test(`${field} reaches the apps/v1 Deployment, and its hash`, () => {
    const hash = (overrides: Overrides) => hashesOf(objects(overrides))["apps-deployment"];
    assert.notEqual(hash(change), hash({}));
  });
}

test("the anchor is applied before what hangs on it, and deleted after it", () => {
  const applied = objects().map(({ kind }) => kind);
  assert.deepEqual(applied, [
    "namespace",
    "pull-secret",
    "apps-deployment",
    "service",
    "disruption-budget",
    "gossip-service",
    "gossip-policy",
  ]);
  const deleted = sentinelPartsToDelete(sentinelSpec()).map(({ kind }) => kind);
  assert.deepEqual(deleted, applied.slice(2).toReversed());
});

test("what is deleted is what was applied, name by name", () => {
  const applied = objects()
    .slice(2)
    .map(({ kind, manifest: { metadata } }) => ({
      kind,
      namespace: metadata?.namespace,
      name: metadata?.name,
    }));
  assert.deepEqual(sentinelPartsToDelete(sentinelSpec()).toReversed(), applied);
});

test("another Deployment under the same name changes the two that it owns, and nothing else", () => {
  const before = hashesOf(objects());
  const after = hashesOf(objects({}, settings, "uid-2"));
  const changed = Object.keys(before).filter((kind) => before[kind] !== after[kind]);
  assert.deepEqual(changed, ["service", "disruption-budget"]);
});

test("an owner is the apps/v1 Deployment of the same name and namespace", () => {
  for (const { kind, manifest } of objects()) {
    const metadata: KubeObject["metadata"] = manifest.metadata;
    const owners = metadata?.ownerReferences;
    if (kind !== "service" && kind !== "disruption-budget") assert.equal(owners, undefined, kind);
    else {
      assert.equal(manifest.metadata?.namespace, manifestOf("apps-deployment").metadata?.namespace);
      assert.deepEqual(owners, [{ apiVersion: "apps/v1", kind: "Deployment", name: "gate", uid: "uid-1" }]);
    }
  }
});

for (const [replicas, expected] of [
  [0, { maxUnavailable: 1 }],
  [1, { minAvailable: 1 }],
  [2, { maxUnavailable: 1 }],
  [10, { maxUnavailable: 1 }],
] as const) {
  test(`the budget of ${replicas} replicas is ${JSON.stringify(expected)}`, () => {
    const { selector, unhealthyPodEvictionPolicy, ...amount } =
      manifestOf("disruption-budget", { replicas }).spec ?? {};
    assert.deepEqual(amount, expected);
    assert.equal(unhealthyPodEvictionPolicy, "AlwaysAllow");
    assert.deepEqual(selector, { matchLabels: { "unkey.com/sentinel.id": "se_1a2B3c4D" } });
  });
}

test("every object of a sentinel is found by the selection, and says that it is krane's", () => {
  for (const { kind, manifest } of objects()) {
    const labels = manifest.metadata?.labels ?? {};
    assert.equal(labels[labelKeys.managedBy], "krane", kind);
    if (kind === "namespace" || kind === "pull-secret") continue;
    assert.equal(manifest.metadata?.namespace, sentinelSelection.namespace);
    assert.match(labels[labelKeys.component] ?? "", /^(sentinel|gossip-lan)$/);
    assert.ok(labels[labelKeys.sentinelId]);
  }
  assert.equal(
    sentinelSelection.labelSelector,
    "app.kubernetes.io/component in (gossip-lan,sentinel),unkey.com/sentinel.id",
  );
});

test("selectors find the pods of the template", () => {
  const { spec } = manifestOf("apps-deployment");
  const labels = spec?.template.metadata?.labels ?? {};
  for (const selector of [
    spec?.selector.matchLabels,
    manifestOf("service").spec?.selector,
    manifestOf("disruption-budget").spec?.selector?.matchLabels,
    manifestOf("gossip-service").spec?.selector,
    manifestOf("gossip-policy").spec.endpointSelector.matchLabels,
  ]) {
    assert.ok(selector);
    for (const [key, value] of Object.entries(selector)) assert.equal(labels[key], value);
  }
});

test("a new count of replicas restarts no pod, a new image or share does", () => {
  const template = (overrides: Overrides) =>
    JSON.stringify(manifestOf("apps-deployment", overrides).spec?.template);
  assert.equal(template({ replicas: 9 }), template({}));
  assert.equal(template({ projectId: "proj_other" }), template({}));
  assert.notEqual(template({ image: "registry.example/platform/sentinel:2" }), template({}));
  assert.notEqual(template({ memoryMib: 512n }), template({}));
});

test("without a registry, or for an image of another one, there is no pull secret", () => {
  const { registry: _, ...without } = settings;
  for (const desired of [objects({}, without), objects({ image: "other.example/sentinel" })]) {
    assert.ok(desired.every(({ kind }) => kind !== "pull-secret"));
    assert.doesNotMatch(JSON.stringify(desired), /imagePullSecrets/);
  }
});

// Fails when a field is added to the pod. Before extending the list, check whether a message can influence the field.
test("the pod of a sentinel has these fields and no other", () => {
  const { containers = [], ...pod } = manifestOf("apps-deployment").spec?.template.spec ?? {};
  assert.deepEqual(Object.keys(pod).sort(), [
    "automountServiceAccountToken",
    "enableServiceLinks",
    "imagePullSecrets",
    "restartPolicy",
    "tolerations",
    "topologySpreadConstraints",
  ]);
  assert.equal(containers.length, 1);
  assert.deepEqual(Object.keys(containers[0] ?? {}).sort(), [
    "args",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resources",
  ]);
});

test("the names and labels of a valid sentinel are valid in Kubernetes", () => {
  const id = fc.stringMatching(/^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/);
  const fields = fc.record({
    k8sName: fc
      .stringMatching(/^[a-z]([a-z0-9-]{0,50}[a-z0-9])?$/)
      .filter((name) => !name.endsWith("-gossip-lan")),
    workspaceId: id,
    projectId: id,
    environmentId: id,
    sentinelId: id,
    replicas: fc.nat(10_000),
    cpuMillicores: fc.bigInt(1n, 1_024_000n),
    memoryMib: fc.bigInt(1n, 2n ** 26n),
  });
  fc.assert(
    fc.property(fields, (overrides) => {
      for (const { manifest } of objects(overrides)) {
        assert.ok(isDns1035Label(manifest.metadata?.name ?? ""), manifest.metadata?.name);
        for (const value of Object.values(manifest.metadata?.labels ?? {})) assert.ok(isLabelValue(value));
        assert.deepEqual(JSON.parse(JSON.stringify(manifest)), manifest, "nothing in it is lost in JSON");
      }
    }),
  );
});
