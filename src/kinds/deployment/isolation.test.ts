import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { replicaSetOfOlderAgent } from "../../../test/support/older-agent.ts";
import { type IsolatedPod, weaknessBeyond, weaknessOf } from "./isolation.ts";

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

const tokenOfAccount = {
  name: "kube-api-access-x7k2p",
  projected: {
    sources: [
      { serviceAccountToken: { path: "token", expirationSeconds: 3607 } },
      { configMap: { name: "kube-root-ca.crt" } },
      { downwardAPI: { items: [{ path: "namespace" }] } },
    ],
  },
};

test("a pod of the older agent, which mounts a token, is as isolated as its template", () => {
  const older = replicaSetOfOlderAgent("acme").spec?.template ?? {};
  const spec = { ...(older.spec as PodSpec), serviceAccountName: "default", volumes: [tokenOfAccount] };
  const made = { metadata: { annotations: {} }, spec };
  assert.equal(weaknessBeyond(made, template), "");
  assert.equal(weaknessBeyond({ ...made, spec: { ...spec, hostPID: true } }, template), "hostPID");
  // With krane's mark, it is from a template that refuses the token.
  const marked = { ...made, metadata: template.metadata ?? {} };
  assert.equal(weaknessBeyond(marked, template), "a token of its service account");
});

test("what the template has as well does not count as less isolated", () => {
  const both = changed({ runtimeClassName: "runc" });
  assert.equal(weaknessBeyond(both, both), "");
  assert.equal(weaknessBeyond(both, template), "runtimeClassName runc");
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
  [
    "volume secrets-token",
    changed({
      volumes: [{ name: "secrets-token", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }],
    }),
  ],
  ["a token of its service account", changed({ volumes: [tokenOfAccount] })],
  [
    "volume kube-api-access-x",
    changed({
      volumes: [{ name: "kube-api-access-x", projected: { sources: [{ secret: { name: "x" } }] } }],
    }),
  ],
  ["annotation dev.gvisor.x", { ...template, metadata: { annotations: { "dev.gvisor.x": "1" } } }],
];

for (const [expected, pod] of weak)
  test(`a pod with less isolation is named: ${expected}`, () => assert.equal(weaknessOf(pod), expected));

test("where no sandbox is required, its absence is no weakness, but another runtime and everything else is", () => {
  const { runtimeClassName: _, ...without } = template.spec as PodSpec;
  assert.notEqual(weaknessOf({ ...template, spec: without }), "");
  assert.equal(weaknessOf({ ...template, spec: without }, ""), "");
  assert.equal(weaknessOf(template, ""), "");
  assert.equal(weaknessOf(changed({ runtimeClassName: "other" }), ""), "runtimeClassName other");
  assert.equal(weaknessOf({ ...template, spec: { ...without, hostPID: true } }, ""), "hostPID");
});
