import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { type applyDeployment, deploymentSpec, utf8 } from "../../../test/support/deployment-messages.ts";
import { ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import { annotationKeys } from "../../model/labels.ts";
import { type DeploymentSettings, desiredDeployment } from "./desired.ts";
import { desiredIngressPolicy, ingressPolicyName } from "./ingress-policy.ts";

const settings: DeploymentSettings = {
  secrets: { audience: "krane", endpoint: "http://krane.platform.svc:8070" },
  registry: { host: "registry.example", username: "robot", password: { reveal: () => "secret" } },
};

// A message with every field set.
const everything = {
  replicas: 2,
  buildId: "build_1",
  encryptedEnvironmentVariables: utf8('{"secrets":{"A":"x"}}'),
  command: ["./server"],
  port: 3000,
  shutdownSignal: "SIGINT",
  healthcheck: utf8('{"path":"/health"}'),
  pullSecret: "krane-registry-acme",
  env: { LOG_LEVEL: "info" },
};

// Another valid value for each field.
const changes: Readonly<Record<string, Parameters<typeof applyDeployment>[0]>> = {
  k8s_namespace: { k8sNamespace: "other" },
  k8s_name: { k8sName: "other" },
  workspace_id: { workspaceId: "ws_other" },
  project_id: { projectId: "proj_other" },
  environment_id: { environmentId: "env_other" },
  deployment_id: { deploymentId: "d_other" },
  image: { image: "registry.example/acme/web:2" },
  replicas: { replicas: 3 },
  cpu_millicores: { cpuMillicores: 251n },
  memory_mib: { memoryMib: 257n },
  build_id: { buildId: "build_2" },
  encrypted_environment_variables: { encryptedEnvironmentVariables: utf8('{"secrets":{"A":"y"}}') },
  command: { command: ["./server", "--verbose"] },
  port: { port: 3001 },
  shutdown_signal: { shutdownSignal: "SIGQUIT" },
  healthcheck: { healthcheck: utf8('{"path":"/alive"}') },
  pull_secret: { pullSecret: "krane-registry-other" },
  env: { env: { LOG_LEVEL: "debug" } },
};

/** Without the hashes, which differ whenever anything does. */
function visible(manifests: unknown): string {
  const hashes: readonly string[] = [annotationKeys.manifestHash, annotationKeys.templateHash];
  return JSON.stringify(manifests, (key, value) => (hashes.includes(key) ? undefined : value));
}

function hashOfReplicaSet(overrides: Parameters<typeof applyDeployment>[0]): string | undefined {
  return replicaSetOf(overrides).metadata?.annotations?.[annotationKeys.manifestHash];
}

function replicaSetOf(overrides: Parameters<typeof applyDeployment>[0], using = settings): ReplicaSet {
  const found = desiredDeployment(deploymentSpec(overrides), using, []).find(
    ({ kind }) => kind === "replica-set",
  );
  assert.ok(found?.kind === "replica-set");
  return found.manifest;
}

function podSpecOf(overrides: Parameters<typeof applyDeployment>[0], using = settings): PodSpec {
  const spec = replicaSetOf(overrides, using).spec?.template?.spec;
  assert.ok(spec);
  return spec;
}

test("the table of changes has every field of the message", () => {
  assert.deepEqual(Object.keys(changes).sort(), ApplyDeploymentSchema.fields.map(({ name }) => name).sort());
});

for (const [field, change] of Object.entries(changes)) {
  test(`${field} reaches the manifests, and their hash`, () => {
    const before = desiredDeployment(deploymentSpec(everything), settings, []);
    const after = desiredDeployment(deploymentSpec({ ...everything, ...change }), settings, []);
    assert.notEqual(visible(after), visible(before));
    assert.notEqual(hashOfReplicaSet({ ...everything, ...change }), hashOfReplicaSet(everything));
  });
}

test("a guard stands before what it guards", () => {
  const kinds = desiredDeployment(deploymentSpec(), settings, []).map(({ kind }) => kind);
  assert.deepEqual(kinds, ["namespace", "pull-secret", "ingress-policy", "replica-set"]);
});

test("without a registry, or for an image of another one, there is no pull secret", () => {
  const { registry: _, ...without } = settings;
  for (const objects of [
    desiredDeployment(deploymentSpec(), without, []),
    desiredDeployment(deploymentSpec({ image: "other.example/web" }), settings, []),
  ]) {
    assert.ok(objects.every(({ kind }) => kind !== "pull-secret"));
    assert.doesNotMatch(JSON.stringify(objects), /imagePullSecrets/);
  }
});

test("a deployment's own pull secret replaces that of the agent, and krane does not write it", () => {
  const own = { pullSecret: "krane-registry-acme" };
  for (const image of ["registry.example/acme/web:1", "other.example/web"]) {
    const objects = desiredDeployment(deploymentSpec({ ...own, image }), settings, []);
    assert.ok(objects.every(({ kind }) => kind !== "pull-secret"));
    assert.deepEqual(podSpecOf({ ...own, image }).imagePullSecrets, [{ name: own.pullSecret }]);
  }
  assert.deepEqual(replicaSetOf({ pullSecret: "" }), replicaSetOf({}));
});

test("the registry's password is in the pull secret only", () => {
  for (const { kind, manifest } of desiredDeployment(deploymentSpec(), settings, [])) {
    const text = JSON.stringify(manifest);
    const decoded = [...text.matchAll(/[A-Za-z0-9+/=]{12,}/g)].map(([word]) =>
      Buffer.from(word, "base64").toString(),
    );
    assert.equal(
      [text, ...decoded].some((part) => part.includes('"secret"')),
      kind === "pull-secret",
      kind,
    );
  }
});

test("a new image or port changes the template's hash, a new count of replicas does not", () => {
  const templateHash = (overrides: Parameters<typeof applyDeployment>[0]) =>
    replicaSetOf(overrides).spec?.template?.metadata?.annotations?.[annotationKeys.templateHash];
  assert.notEqual(templateHash({ image: "registry.example/acme/web:2" }), templateHash({}));
  assert.notEqual(templateHash({ port: 1 }), templateHash({}));
  assert.equal(templateHash({ replicas: 9 }), templateHash({}));
});

// Fails when a field is added to a tenant's pod. Before extending the list, check whether a message can influence it.
test("the pod of a tenant has these fields and no other", () => {
  const { containers, volumes, ...pod } = podSpecOf(everything);
  assert.deepEqual(Object.keys(pod).sort(), [
    "affinity",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "imagePullSecrets",
    "restartPolicy",
    "runtimeClassName",
    "tolerations",
    "topologySpreadConstraints",
  ]);
  assert.equal(pod.runtimeClassName, "gvisor");
  assert.equal(pod.automountServiceAccountToken, false);
  assert.equal(containers.length, 1);
  assert.deepEqual(Object.keys(containers[0] ?? {}).sort(), [
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resources",
    "volumeMounts",
  ]);
  assert.deepEqual(volumes, [
    {
      name: "secrets-token",
      projected: {
        sources: [{ serviceAccountToken: { audience: "krane", expirationSeconds: 600, path: "token" } }],
      },
    },
  ]);
});

test("without variables there is no token, no volume and no endpoint in the pod", () => {
  const { volumes, containers } = podSpecOf({});
  assert.equal(volumes, undefined);
  assert.equal(containers[0]?.volumeMounts, undefined);
  assert.deepEqual(
    containers[0]?.env?.map(({ name }) => name),
    ["PORT", "UNKEY_WORKSPACE_ID", "UNKEY_PROJECT_ID", "UNKEY_ENVIRONMENT_ID", "UNKEY_DEPLOYMENT_ID"],
  );
});

test("the largest deployment that is accepted stays below the limits of the API server", () => {
  const objects = desiredDeployment(
    deploymentSpec({
      ...everything,
      command: ["run", "\u0001".repeat(130_000)],
      encryptedEnvironmentVariables: utf8(JSON.stringify({ secrets: { A: "x".repeat(98_000) } })),
      healthcheck: utf8(JSON.stringify({ method: "POST", path: `/${'"'.repeat(2_000)}` })),
    }),
    settings,
    Array.from({ length: 1_000 }, (_, index) => index + 1),
  );
  for (const { kind, manifest } of objects) {
    const bytes = Buffer.byteLength(JSON.stringify(manifest));
    // The API server accepts 3 MiB, but etcd by default only 1.5 MiB, including managedFields.
    assert.ok(bytes < 1.25 * 2 ** 20, `${kind}: ${bytes}`);
  }
});

test("an environment's policy has a name of its own, whatever the case of its id", () => {
  assert.match(ingressPolicyName("env_A"), /^allow-sentinel-ingress-[0-9a-f]{16}$/);
  assert.notEqual(ingressPolicyName("env_A"), ingressPolicyName("env_a"));
});

test("the policy is the same for the same ports in any order", () => {
  const environment = { namespace: "acme", workspaceId: "ws_1", environmentId: "env_1" };
  assert.deepEqual(
    desiredIngressPolicy(environment, [8080, 3000, 10_000, 3000]),
    desiredIngressPolicy(environment, [3000, 10_000, 8080]),
  );
});

test("the program gets plain variables as they are written, in one order, and a secret instead of one with its name", () => {
  const env = { B: "$(PORT) costs $5, not $$5", A: "", SECRET: "plain" };
  const blob = { encryptedEnvironmentVariables: utf8('{"secrets":{"SECRET":"x"}}') };
  const own = podSpecOf({ ...blob, env }).containers[0]?.env ?? [];
  const names = own.map(({ name }) => name);
  assert.deepEqual(
    own.filter(({ name }) => Object.hasOwn(env, name)),
    [
      { name: "A", value: "" },
      { name: "B", value: "$$(PORT) costs $$5, not $$$$5" },
    ],
  );
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(
    replicaSetOf({ env: { ...env, A: "" } }),
    replicaSetOf({ env: { A: "", SECRET: "plain", B: env.B } }),
  );
});
