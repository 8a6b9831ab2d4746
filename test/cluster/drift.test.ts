// Whatever anybody edits in the objects that krane writes is undone, on a real API server.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, type TestContext, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { findDriftedFields } from "../../src/engine/drifted-fields.ts";
import { type IsolatedPod, weaknessOf } from "../../src/kinds/deployment/isolation.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import {
  appsDeployments,
  ciliumNetworkPolicies,
  podDisruptionBudgets,
  replicaSets,
  services,
} from "../../src/kube/resources.ts";
import { serverDefaultsOf } from "../../src/kube/server-defaults.ts";
import { knownFieldNames, mapFieldNames } from "../../src/kube/spec-field-names.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { sentinelNamespace } from "../../src/model/labels.ts";
import { withManifestHash } from "../../src/model/manifest-hash.ts";
import { realServerTarget } from "../support/cluster/contract-target.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { checkAdditions, checkEdits, checkWebhook, DriftTrial, type Json } from "../support/drift-trial.ts";
import { eventually } from "../support/eventually.ts";
import { installMutation } from "../support/mutating-policy.ts";
import { startMutatingWebhook } from "../support/mutating-webhook.ts";
import {
  unsentDeploymentFields,
  unsentPodFields,
  unsentPolicyFields,
  unsentServiceFields,
} from "../support/unsent-fields.ts";

const cluster = clusterUnderTest();
const { transport, close } = realServerTarget(cluster);
const api = createKubeApi(transport);
let account: ServiceAccountAccess;
let agent: KubeTransport;
const signal = AbortSignal.timeout(600_000);
const kinds: readonly ResourceKind[] = [
  replicaSets,
  appsDeployments,
  services,
  podDisruptionBudgets,
  ciliumNetworkPolicies,
];

// krane repairs with the rights of the chart, and under its admission policy.
before(async () => {
  account = await installRights(cluster, ["agent", "registry", "secrets"]);
  const credentials = fixedCredential({ authorization: `Bearer ${account.token}` });
  const endpoint = { server: cluster.serverUrl, ca: cluster.ca, credentials };
  agent = createHttpTransport({ endpoint, connections: 4 }, { clock: createSystemClock() });
});

after(async () => {
  await agent.close();
  await account.remove();
  await close();
});

/** Without owners, which do not exist here, so that the garbage collector would delete their objects. */
function goldenObjects(folder: string): readonly KubeObject[] {
  const text = readFileSync(new URL(`../../testdata/${folder}/manifests.json`, import.meta.url), "utf8");
  const all: readonly KubeObject[] = JSON.parse(text);
  return all.map(({ metadata, ...rest }) => {
    const { ownerReferences: _, ...kept } = metadata ?? {};
    return { ...rest, metadata: kept };
  });
}

/** One object of a golden case; without pods, unless asked for, because they take time. */
async function trialOf(
  t: TestContext,
  folder: string,
  kind: ResourceKind,
  index = 0,
  replicas = 0,
  as: "agent" | "administrator" = "agent",
): Promise<DriftTrial> {
  // The chart allows krane the objects of sentinels in their own namespace only.
  const isSentinel = folder.startsWith("sentinel/");
  const namespace = isSentinel ? sentinelNamespace : await cluster.freshNamespace(t);
  const found =
    goldenObjects(folder).filter(({ kind: name }) => name === kind.kind)[index] ??
    assert.fail(`no ${kind.kind}`);
  const { spec, ...rest } = found as KubeObject & { spec?: { replicas?: number } };
  const idle = spec?.replicas === undefined ? spec : { ...spec, replicas };
  const trial = new DriftTrial(
    kind,
    { ...rest, metadata: { ...rest.metadata, namespace }, ...(idle && { spec: idle }) } as KubeObject,
    { krane: as === "agent" ? agent : transport, others: transport },
    signal,
    kind === replicaSets ? weaknessOfTemplate : undefined,
  );
  if (isSentinel)
    t.after(async () => {
      const { uid = "" } = (await trial.live()).metadata ?? {};
      await api.delete(kind, trial.ref, { uid }, signal);
    });
  return trial;
}

function weaknessOfTemplate({ spec }: KubeObject & { spec?: { template?: IsolatedPod } }): string {
  return weaknessOf(spec?.template ?? {});
}

const cases: readonly {
  readonly folder: string;
  readonly kind: ResourceKind;
  readonly index?: number;
  readonly parts: readonly Json[];
}[] = [
  { folder: "deployment/everything", kind: replicaSets, parts: unsentPodFields("deployment") },
  {
    folder: "sentinel/three-replicas",
    kind: appsDeployments,
    parts: [...unsentPodFields("sentinel"), ...unsentDeploymentFields],
  },
  { folder: "sentinel/three-replicas", kind: services, parts: unsentServiceFields },
  { folder: "sentinel/three-replicas", kind: services, index: 1, parts: unsentServiceFields },
  { folder: "sentinel/three-replicas", kind: podDisruptionBudgets, parts: [] },
  { folder: "sentinel/three-replicas", kind: ciliumNetworkPolicies, parts: unsentPolicyFields },
  { folder: "deployment/everything", kind: ciliumNetworkPolicies, parts: unsentPolicyFields },
  { folder: "policy/deny-all", kind: ciliumNetworkPolicies, parts: unsentPolicyFields },
  { folder: "route/environment", kind: services, parts: unsentServiceFields },
];

// A policy has its rules in `spec`, `specs` or both, and Cilium enforces both. That of a route has `specs` only.
const openRule = { endpointSelector: {}, ingress: [{ fromEntities: ["all"] }] };
const ofRoutes: typeof cases = [
  {
    folder: "route/gateway-moving",
    kind: ciliumNetworkPolicies,
    parts: [{ spec: openRule }, { spec: { ...openRule, enableDefaultDeny: { ingress: false } } }],
  },
];

for (const { folder, kind, index = 0, parts } of [...cases, ...ofRoutes]) {
  const name = `${kind.kind} ${index} of ${folder}`;

  test(`${name}: every field that krane sends is restored`, async (t) => {
    const trial = await trialOf(t, folder, kind, index);
    const accepted = await checkEdits(trial);
    t.diagnostic(`${accepted} edits`);
    assert.ok(accepted >= 5, `only ${accepted} edits were accepted`);
  });

  if (parts.length > 0)
    test(`${name}: every field that krane does not send is removed`, async (t) => {
      const all = kind === ciliumNetworkPolicies ? [...parts, { specs: [openRule] }] : parts;
      const accepted = await checkAdditions(await trialOf(t, folder, kind, index), all);
      t.diagnostic(`${accepted} edits`);
      assert.ok(accepted >= parts.length / 2, `only ${accepted} edits were accepted`);
    });
}

for (const { folder, kind, index = 0, parts } of cases)
  test(`${kind.kind} ${index} of ${folder}: what a webhook changes is shown or held, and not fought`, async (t) => {
    const trial = await trialOf(t, folder, kind, index);
    const weaknessOf = kind === replicaSets ? weaknessOfTemplate : undefined;
    const transports = { krane: transport, others: transport };
    const unrestricted = new DriftTrial(kind, trial.manifest, transports, signal, weaknessOf);
    const webhook = await startMutatingWebhook(t, cluster, kind, trial.ref.namespace);
    await trial.reconcile();
    webhook.specOf = ({ ...object }) => (object as { readonly spec?: unknown }).spec;
    await eventually("the webhook is called", async () => {
      const note = { metadata: { annotations: { note: `${webhook.changes}` } } };
      await trial.write("PATCH", "application/merge-patch+json", note, "someone");
      assert.ok(webhook.changes > 0, "it is not");
    });
    webhook.specOf = undefined;
    const accepted = await checkWebhook(trial, unrestricted, webhook, parts);
    t.diagnostic(`${accepted} changes`);
    assert.ok(accepted >= 5, `only ${accepted} changes were accepted`);
  });

test("a patch of a stale object conflicts, and so does one whose field is gone", async (t) => {
  const trial = await trialOf(t, "deployment/minimal", replicaSets);
  await trial.reconcile();
  const stale = await trial.live();
  const body = { spec: { template: { spec: { hostPID: true } } } };
  assert.ok(await trial.write("PATCH", "application/merge-patch+json", body, "someone"));
  const patch = (path: string) =>
    api.patch(replicaSets, stale, [{ op: "remove", path }], { fieldManager: "krane" }, signal);
  await assert.rejects(patch("/spec/template/spec/hostPID"), { status: 409 });
  // The server applies a patch before it compares versions.
  await assert.rejects(patch("/spec/template/spec/hostIPC"), { status: 422 });
});

test("a probe can be dropped, whatever others have added to it", async (t) => {
  for (const [manager, livenessProbe] of [
    ["kubectl-edit", { terminationGracePeriodSeconds: 5 }],
    // Its value is that of the server's default.
    ["mesh", { successThreshold: 1 }],
  ] as const) {
    const trial = await trialOf(t, "deployment/get-healthcheck", replicaSets);
    await trial.reconcile();
    const part = { containers: [{ name: "deployment", livenessProbe }] };
    const { apiVersion, kind, metadata, spec } = trial.manifest as ReplicaSet;
    const body = {
      apiVersion,
      kind,
      metadata: { name: metadata?.name },
      spec: { selector: spec?.selector, template: { spec: part } },
    };
    assert.ok(await trial.write("PATCH", "application/apply-patch+yaml", body, manager));
    await trial.reconcile(withoutProbes(trial.manifest as ReplicaSet));
    const { spec: live } = (await trial.live()) as ReplicaSet;
    assert.equal(live?.template?.spec?.containers[0]?.livenessProbe, undefined);
  }
});

function withoutProbes(manifest: ReplicaSet): KubeObject {
  const copy = structuredClone(manifest);
  for (const container of copy.spec?.template?.spec?.containers ?? []) {
    delete container.livenessProbe;
    delete container.readinessProbe;
  }
  return withManifestHash(copy) as KubeObject;
}

test("a field that admission sets is left alone and shown, without a write, also after a restart", async (t) => {
  const trial = await trialOf(t, "deployment/minimal", replicaSets);
  await mutate(t, trial, '"/spec/template/spec/nodeSelector", value: {"zone": "a"}', "nodeSelector");
  trial.restart();
  for (const isRestart of [false, true]) {
    if (isRestart) trial.restart();
    const writes = await trial.reconcile();
    assert.equal(writes, 0);
    assert.equal(trial.outcome?.kind, "applied");
    assert.match(JSON.stringify(trial.outcome), /spec\.template\.spec\.nodeSelector/);
  }
  // What a person adds beside it is still removed.
  const body = { spec: { template: { spec: { hostIPC: true } } } };
  assert.ok(await trial.write("PATCH", "application/merge-patch+json", body, "someone"));
  await trial.reconcile();
  const { spec } = (await trial.live()) as ReplicaSet;
  assert.equal(spec?.template?.spec?.hostIPC, undefined);
  assert.deepEqual(spec?.template?.spec?.nodeSelector, { zone: "a" });
});

for (const [as, field, value] of [
  ["administrator", "hostPID", "true"],
  ["agent", "hostPID", "true"],
  // krane sends this one, so it is repaired by an apply.
  ["agent", "runtimeClassName", '"runc"'],
] as const)
  test(`if admission sets ${field}, a deployment gets no new pods until that ends, for the ${as}`, async (t) => {
    const trial = await trialOf(t, "deployment/minimal", replicaSets, 0, 2, as);
    const replicas = async () => ((await trial.live()) as ReplicaSet).spec?.replicas;
    const stop = await mutate(t, trial, `"/spec/template/spec/${field}", value: ${value}`, field);
    await trial.reconcile();
    assert.equal(trial.outcome?.kind, "held", JSON.stringify(trial.outcome));
    assert.match(JSON.stringify(trial.outcome), new RegExp(field));
    assert.equal(await replicas(), 0);
    const held = trial.events.filter(({ reason }) => reason === "Held").map(({ message }) => message);
    assert.equal(held.length, 1);
    assert.match(held[0] ?? "", new RegExp(`^krane limited this object to 0 pods: .*${field}`));
    for (const isRestart of [false, true]) {
      if (isRestart) trial.restart();
      const writes = await trial.reconcile();
      assert.equal(writes, 0);
      assert.equal(trial.outcome?.kind, "held");
    }
    assert.equal(trial.events.filter(({ reason }) => reason === "Held").length, 1);
    await stop();
    await eventually("it has its pods again", async () => {
      await trial.reconcile();
      assert.equal(trial.outcome?.kind, "applied", "it is held");
    });
    const { spec } = (await trial.live()) as ReplicaSet;
    assert.deepEqual([spec?.replicas, spec?.template?.spec?.[field]], [2, podSpecOf(trial.manifest)[field]]);
    assert.equal(await trial.reconcile(), 0);
  });

function podSpecOf(object: KubeObject): Json {
  return ((object as ReplicaSet).spec?.template?.spec ?? {}) as unknown as Json;
}

/** Adds a field to every ReplicaSet of the namespace, as a mutating webhook does, and waits until it does. */
async function mutate(t: TestContext, trial: DriftTrial, addition: string, field: string) {
  const { namespace } = trial.ref;
  const stop = await installMutation(t, cluster, {
    name: `${namespace}.example.com`,
    namespace,
    rule: {
      apiGroups: ["apps"],
      apiVersions: ["v1"],
      operations: ["CREATE", "UPDATE"],
      resources: ["replicasets"],
    },
    patch: `[JSONPatch{op: "add", path: ${addition}}]`,
  });
  // The server takes some time to follow its own policies.
  await eventually("the policy works", async () => {
    const { object } = await api.apply(
      replicaSets,
      trial.manifest as ReplicaSet,
      { fieldManager: "krane", force: true, dryRun: true },
      signal,
    );
    assert.notDeepEqual(podSpecOf(object)[field], podSpecOf(trial.manifest)[field], "it does not");
  });
  await api.apply(replicaSets, trial.manifest as ReplicaSet, { fieldManager: "krane", force: true }, signal);
  return stop;
}

test("nothing that the server itself adds to a golden manifest counts as drift", async (t) => {
  const namespace = await cluster.freshNamespace(t);
  for (const folder of ["deployment", "sentinel", "policy", "route"])
    for (const name of readdirSync(new URL(`../../testdata/${folder}/`, import.meta.url)))
      for (const manifest of goldenObjects(`${folder}/${name}`)) {
        const kind = kinds.find((one) => one.kind === manifest.kind);
        if (kind === undefined) continue;
        const moved = { ...manifest, metadata: { ...manifest.metadata, namespace } };
        const { object } = await api.apply(kind, moved, { fieldManager: "krane", force: true }, signal);
        assert.deepEqual(findDriftedFields(object, serverDefaultsOf(kind), moved), [], `${folder}/${name}`);
      }
});

test("krane knows the name of every field that these kinds can have", async () => {
  const names = new Set<string>();
  const maps = new Set<string>();
  for (const { path, root } of schemas) {
    const { body } = await transport.send({ method: "GET", path, accept: "application/json" }, signal);
    const all = (body as { components: { schemas: Record<string, Schema> } }).components.schemas;
    collectNames(all[root]?.properties?.["spec"], "spec", all, { names, maps, seen: new Set() });
  }
  assert.deepEqual(
    [...names].filter((name) => !knownFieldNames.has(name)),
    [],
  );
  assert.deepEqual(
    [...maps].filter((name) => !mapFieldNames.has(name)),
    [],
  );
});

const schemas = [
  { path: "/openapi/v3/apis/apps/v1", root: "io.k8s.api.apps.v1.ReplicaSet" },
  { path: "/openapi/v3/apis/apps/v1", root: "io.k8s.api.apps.v1.Deployment" },
  { path: "/openapi/v3/api/v1", root: "io.k8s.api.core.v1.Service" },
  { path: "/openapi/v3/apis/policy/v1", root: "io.k8s.api.policy.v1.PodDisruptionBudget" },
  { path: "/openapi/v3/apis/cilium.io/v2", root: "io.cilium.v2.CiliumNetworkPolicy" },
];

interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
}

interface Names {
  readonly names: Set<string>;
  readonly maps: Set<string>;
  readonly seen: Set<Schema>;
}

function collectNames(
  schema: Schema | undefined,
  name: string,
  all: Readonly<Record<string, Schema>>,
  into: Names,
): void {
  if (schema === undefined || into.seen.has(schema)) return;
  into.seen.add(schema);
  if (schema.$ref !== undefined) collectNames(all[schema.$ref.split("/").at(-1) ?? ""], name, all, into);
  for (const part of [...(schema.allOf ?? []), schema.items]) collectNames(part, name, all, into);
  if (schema.additionalProperties !== undefined) {
    into.maps.add(name);
    collectNames(schema.additionalProperties, name, all, into);
  }
  for (const [member, below] of Object.entries(schema.properties ?? {})) {
    into.names.add(member);
    collectNames(below, member, all, into);
  }
}
