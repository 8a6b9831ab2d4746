import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { type IsolatedPod, weaknessOf } from "./isolation.ts";

const folder = new URL("../../../testdata/deployment/", import.meta.url);

function templates(): IsolatedPod[] {
  return readdirSync(folder).flatMap((name) => {
    const manifests: readonly ReplicaSet[] = JSON.parse(
      readFileSync(new URL(`${name}/manifests.json`, folder), "utf8"),
    );
    return manifests.flatMap(({ kind, spec }) =>
      kind === "ReplicaSet" && spec?.template ? [spec.template as IsolatedPod] : [],
    );
  });
}

const [template = assert.fail("no template")] = templates();
const [container = assert.fail("no container")] = template.spec?.containers ?? [];
const changed = (spec: Partial<NonNullable<IsolatedPod["spec"]>>): IsolatedPod => ({
  ...template,
  spec: { ...(template.spec as PodSpec), ...spec },
});
const inContainer = (fields: object) => changed({ containers: [{ ...container, ...fields }] });

test("every template that krane writes is isolated, and so is a pod that Kubernetes made of it", () => {
  const all = templates();
  assert.ok(all.length > 20);
  for (const one of all) assert.equal(weaknessOf(one), "");
  const pod = changed({
    serviceAccountName: "default",
    nodeName: "node-1",
    priority: 0,
    securityContext: {},
  });
  assert.equal(weaknessOf(pod), "");
});

test("what the platform's injector adds does not lower it", () => {
  const injected = changed({
    initContainers: [{ name: "copy-inject", image: "inject" }],
    volumes: [{ name: "inject-bin", emptyDir: { medium: "Memory" } }],
  });
  assert.equal(weaknessOf(injected), "");
  const disguised = changed({ volumes: [{ name: "inject-bin", hostPath: { path: "/" } }] });
  assert.equal(weaknessOf(disguised), "volume inject-bin");
});

const weak: readonly (readonly [string, IsolatedPod])[] = [
  ["runtimeClassName is missing", changed({ runtimeClassName: undefined as unknown as string })],
  ["runtimeClassName runc", changed({ runtimeClassName: "runc" })],
  ["hostNetwork", changed({ hostNetwork: true })],
  ["hostPID", changed({ hostPID: true })],
  ["hostIPC", changed({ hostIPC: true })],
  ["service account builder", changed({ serviceAccountName: "builder" })],
  ["a token of its service account", changed({ automountServiceAccountToken: true })],
  ["sysctls", changed({ securityContext: { sysctls: [{ name: "a", value: "b" }] } })],
  ["seccompProfile", changed({ securityContext: { seccompProfile: { type: "Unconfined" } } })],
  ["privileged", inContainer({ securityContext: { privileged: true } })],
  ["capabilities SYS_ADMIN", inContainer({ securityContext: { capabilities: { add: ["SYS_ADMIN"] } } })],
  ["procMount", inContainer({ securityContext: { procMount: "Unmasked" } })],
  ["hostPort", inContainer({ ports: [{ containerPort: 80, hostPort: 80 }] })],
  ["container evil", changed({ containers: [container, { name: "evil", image: "evil" }] })],
  ["init container evil", changed({ initContainers: [{ name: "evil", image: "evil" }] })],
  [
    "privileged",
    changed({ initContainers: [{ name: "copy-inject", securityContext: { privileged: true } }] }),
  ],
  ["ephemeral container debugger", changed({ ephemeralContainers: [{ name: "debugger" }] })],
  ["volume host", changed({ volumes: [{ name: "host", hostPath: { path: "/" } }] })],
  ["volume secrets-token", changed({ volumes: [{ name: "secrets-token", secret: { secretName: "x" } }] })],
  ["annotation dev.gvisor.x", { ...template, metadata: { annotations: { "dev.gvisor.x": "1" } } }],
];

for (const [expected, pod] of weak)
  test(`a pod with less isolation is named: ${expected}`, () => assert.equal(weaknessOf(pod), expected));
